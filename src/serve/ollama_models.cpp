// GET /api/tags, /api/ps, /api/version, POST /api/show: the models in the words of Ollama's API. Answered from values, so
// never behind an engine and without loading anything.
#include <algorithm>

#include "base/sha256.h"
#include "serve/endpoints.h"
#include "serve/ollama_json.h"
#include "serve/ollama_request.h"
#include "serve/request_error.h"

namespace godwit::serve {
namespace {

// Clients compare it with the release that brought what they need; this one has all that is served here.
constexpr std::string_view kApiVersion = "0.12.11";
// There is always a time in this API; far away stands for a model that stays.
constexpr std::string_view kNever = "2318-01-01T00:00:00Z";

std::string parameter_size(std::int64_t parameters) {
  if (parameters <= 0) return "";
  const auto count = static_cast<double>(parameters);
  return parameters >= 1'000'000'000 ? fmt::format("{:.1f}B", count / 1e9) : fmt::format("{:.2f}M", count / 1e6);
}

Json details_json(const ModelEntry& entry) {
  return {{"parent_model", ""},
          {"format", ""},
          {"family", entry.architecture},
          {"families", Json::array({entry.architecture})},
          {"parameter_size", parameter_size(entry.parameters)},
          {"quantization_level", entry.quantization}};
}

Json tag_json(const ModelEntry& entry) {
  return {{"name", entry.id},
          {"model", entry.id},
          {"modified_at", rfc3339(entry.created)},
          {"size", entry.size_bytes},
          {"digest", sha256_of(entry.id)},  // of the name: no file is read for it
          {"details", details_json(entry)}};
}

Json capabilities_json(const ModelEntry& entry) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"completion", "completion"}, {"tools", "tools"}, {"reasoning", "thinking"}, {"embedding", "embedding"}};
  Json list = Json::array();
  for (const auto& [ours, theirs] : kNames)
    if (std::ranges::find(entry.capabilities, ours) != entry.capabilities.end()) list.push_back(theirs);
  return list;
}

// "temperature 0.6" a line, as a Modelfile has it: what the model's own files say.
std::string parameters_text(const decode::SamplingParams& sampling) {
  const decode::SamplingParams plain;
  std::string text;
  const auto add = [&](std::string_view name, auto value, auto absent) {
    if (value != absent) text += fmt::format("{}{} {}", text.empty() ? "" : "\n", name, value);
  };
  add("temperature", sampling.temperature, plain.temperature);
  add("top_k", sampling.top_k, plain.top_k);
  add("top_p", sampling.top_p, plain.top_p);
  add("min_p", sampling.min_p, plain.min_p);
  add("repeat_penalty", sampling.repetition_penalty, plain.repetition_penalty);
  return text;
}

}  // namespace

ModelEntry find_ollama_entry(const std::string& name, Context& context) {
  const std::vector<ModelEntry> known = context.models.list();
  if (is_any_model(name) && !known.empty()) return known.front();
  const auto found = std::ranges::find_if(known, [&](const ModelEntry& entry) { return entry.is_named(name); });
  if (found == known.end()) unknown_model(name, known);
  return *found;
}

Response ollama_tags(const Request&, Context& context) {
  Json models = Json::array();
  for (const ModelEntry& entry : context.models.list()) models.push_back(tag_json(entry));
  return Response::json({{"models", std::move(models)}});
}

Response ollama_running(const Request&, Context& context) {
  Json models = Json::array();
  for (const ModelEntry& entry : context.models.list()) {
    if (!entry.is_loaded) continue;
    Json model = tag_json(entry);
    model["expires_at"] = kNever;
    model["size_vram"] = 0;
    model["context_length"] = entry.context_length;
    models.push_back(std::move(model));
  }
  return Response::json({{"models", std::move(models)}});
}

Response ollama_show(const Request& request, Context& context) {
  const Json body = parse_body(request.body);
  const ModelEntry entry = find_ollama_entry(ollama_model_name(body), context);
  const std::string architecture = entry.architecture.empty() ? "unknown" : entry.architecture;
  Json info{{"general.architecture", architecture}, {"general.basename", entry.id}};
  if (entry.parameters > 0) info["general.parameter_count"] = entry.parameters;
  if (entry.context_length > 0) info[architecture + ".context_length"] = entry.context_length;
  if (entry.vocabulary > 0) info[architecture + ".vocab_size"] = entry.vocabulary;
  Json shown{{"modelfile", ""},
             {"parameters", ""},
             {"template", ""},
             {"details", details_json(entry)},
             {"model_info", std::move(info)},
             {"capabilities", capabilities_json(entry)},
             {"modified_at", rfc3339(entry.created)}};
  if (!entry.is_loaded) return Response::json(shown);
  const auto loaded = context.models.open(entry.id, request.check_alive);
  shown["parameters"] = parameters_text(loaded->model.sampling);
  if (loaded->model.chat_template) shown["template"] = loaded->model.chat_template->source();
  return Response::json(shown);
}

Response ollama_version(const Request&, Context&) { return Response::json({{"version", kApiVersion}}); }

Response ollama_unserved(const Request& request, Context&) {
  static_cast<void>(parse_body(request.body));
  throw RequestError(ErrorCode::unsupported,
                     fmt::format("{} is not served: models are chosen when the server is started", request.path),
                     {.code = "not_implemented", .status = 501});
}

}  // namespace godwit::serve
