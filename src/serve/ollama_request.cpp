#include "serve/ollama_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "serve/answer_fields.h"
#include "serve/chat_request.h"
#include "serve/ollama_messages.h"
#include "serve/request_error.h"
#include "serve/sampling_fields.h"
#include "serve/structured_output.h"
#include "serve/tool_fields.h"
#include "serve/unserved_fields.h"

namespace godwit::serve {
namespace {

constexpr std::array<std::string_view, 4> kEfforts = {"low", "medium", "high", "max"};

// What Ollama draws with where neither the request nor the model says how. The names are those of every API.
Json complete_options(const JsonFields& in, const ServedModel& model) {
  const Json* given = in.object("options");
  Json options = given ? *given : Json::object();
  const decode::SamplingParams plain;
  const auto fill = [&](const char* name, bool is_silent, const Json& value) {
    if (is_silent && (!options.contains(name) || options[name].is_null())) options[name] = value;
  };
  fill("temperature", model.sampling.temperature == plain.temperature, 0.8);
  fill("top_k", model.sampling.top_k == plain.top_k, 40);
  fill("top_p", model.sampling.top_p == plain.top_p, 0.9);
  const bool has_other_name = options.contains("repetition_penalty");
  fill("repeat_penalty", model.sampling.repetition_penalty == plain.repetition_penalty && !has_other_name, 1.1);
  return options;
}

// num_ctx is read and set aside: the context is what it is, and a prompt that is too long is refused, never cut.
void read_options(const JsonFields& in, const ServedModel& model, decode::GenerationRequest& request) {
  const Json options = complete_options(in, model);
  const JsonFields fields(options, in.path_of("options"));
  const CommonFields common = read_common_fields(fields, model);
  static_cast<void>(fields.integer("num_ctx", 0));
  request.sampling = common.sampling;
  request.stop = read_stop(fields);
  request.ignore_eos = common.ignore_eos;
  const int limit = fields.count("num_predict", std::numeric_limits<std::int64_t>::min()).value_or(-1);
  request.max_tokens = limit > 0 ? limit : -1;  // -1 and -2 in its words; its runner takes 0 and every other for -1
  read_answer_fields(fields, model, request);
  refuse_misplaced_fields(in, fields, "options");
  refuse_unheeded_fields(fields);
}

ReasoningWish read_think(const JsonFields& in) {
  const Json* think = in.find("think");
  if (!think) return {};
  if (think->is_boolean()) return {.is_on = think->get<bool>()};
  if (!think->is_string() || std::ranges::find(kEfforts, think->get<std::string>()) == kEfforts.end())
    bad_field(in.path_of("think"), "must be true, false, low, medium, high or max, got {}", shown(*think));
  return {.is_on = true, .effort = think->get<std::string>()};
}

OllamaRequest read_common(const JsonFields& in, const ServedModel& model) {
  OllamaRequest out;
  out.stream = in.boolean("stream").value_or(true);
  out.keep_alive = read_keep_alive(in);
  read_options(in, model, out.turn.common);
  out.turn.output = read_structured_output(in, OutputFields::ollama);
  read_logprobs(in, out.turn.common);
  out.turn.reasoning = read_think(in);
  return out;
}

// "1h30m" -> 5400. The units of Go; a number without one is seconds.
std::optional<double> duration_seconds(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 6> kUnits = {
      {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}}};
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  double total = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error != std::errc() || number < 0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const auto unit = std::ranges::find_if(kUnits, [&](const auto& one) { return text.starts_with(one.first); });
    if (unit == kUnits.end() && !text.empty()) return std::nullopt;
    total += number * (unit == kUnits.end() ? 1 : unit->second);
    if (unit != kUnits.end()) text.remove_prefix(unit->first.size());
  }
  return is_negative ? -total : total;
}

}  // namespace

std::string ollama_model_name(const Json& body) {
  const JsonFields in(body);
  std::string name = in.string("model").value_or(in.string("name").value_or(""));
  constexpr std::string_view kTag = ":latest";
  if (name.ends_with(kTag)) name.resize(name.size() - kTag.size());
  return name;
}

std::optional<double> read_keep_alive(const JsonFields& in) {
  const Json* value = in.find("keep_alive");
  if (!value) return std::nullopt;
  if (value->is_number() && std::abs(value->get<double>()) < 1e12) return value->get<double>();
  const auto seconds = value->is_string() ? duration_seconds(value->get_ref<const std::string&>()) : std::nullopt;
  if (!seconds)
    bad_field(in.path_of("keep_alive"), "must be a number of seconds or a duration such as \"5m\", got {}", shown(*value));
  return seconds;
}

bool only_unloads(const Json& body, std::string_view content_field) {
  const JsonFields in(body);
  const Json* content = in.find(content_field);
  return (!content || *content == "" || *content == Json::array()) && read_keep_alive(in) == 0.0;
}

OllamaRequest parse_ollama_chat(const Json& body, const ServedModel& model) {
  const JsonFields in(body);
  OllamaRequest out = read_common(in, model);
  ToolFields tools = read_chat_tools(in);
  out.turn.tools = std::move(tools.tools);
  out.turn.tool_choice = std::move(tools.choice);
  out.turn.template_variables = read_template_variables(in);
  const Json* messages = in.array("messages");
  out.asks_nothing = !messages || messages->empty();
  if (!out.asks_nothing) out.turn.messages = read_ollama_messages(*messages, in.path_of("messages"));
  refuse_unheeded_fields(in);
  return out;
}

OllamaRequest parse_ollama_generate(const Json& body, const ServedModel& model) {
  const JsonFields in(body);
  OllamaRequest out = read_common(in, model);
  const std::string prompt = in.string("prompt").value_or("");
  const std::string system = in.string("system").value_or("");
  out.asks_nothing = prompt.empty();
  if (in.boolean("raw").value_or(false)) {
    if (!system.empty()) bad_field(in.path_of("system"), "has no place in a raw prompt");
    out.raw_prompt = prompt;
  } else {
    out.turn.template_variables = read_template_variables(in);
  }
  if (!system.empty()) out.turn.messages.push_back({{"role", "system"}, {"content", system}});
  out.turn.messages.push_back({{"role", "user"}, {"content", prompt}});
  refuse_unheeded_fields(in);
  return out;
}

}  // namespace godwit::serve
