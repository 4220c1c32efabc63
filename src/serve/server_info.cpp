// GET /props, /slots, /version: what the server is and does, in llama.cpp's and vLLM's words. Answered from values, so never
// behind an engine, and without a word of anybody's prompt.
#include "serve/endpoints.h"
#include "serve/request_error.h"

namespace godwit::serve {
namespace {

Json sampling_json(const decode::SamplingParams& sampling) {
  return {{"temperature", sampling.temperature},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"min_p", sampling.min_p},
          {"repeat_last_n", sampling.penalty_window},
          {"repeat_penalty", sampling.repetition_penalty},
          {"presence_penalty", sampling.presence_penalty},
          {"frequency_penalty", sampling.frequency_penalty}};
}

// The model of "?model=…", else the one of requests that name none.
ModelEntry wanted_entry(const Request& request, Context& context) {
  const std::vector<ModelEntry> known = context.models.list();
  const std::string name = query_value(request.target, "model").value_or("");
  if (is_any_model(name) && !known.empty()) return known.front();
  for (const ModelEntry& entry : known)
    if (entry.is_named(name)) return entry;
  unknown_model(name, known);
}

}  // namespace

Response props(const Request& request, Context& context) {
  const ModelEntry entry = wanted_entry(request, context);
  Json settings{{"n_ctx", entry.context_length}};
  Json answer{{"model_alias", entry.id},
              {"is_loaded", entry.is_loaded},
              {"capabilities", entry.capabilities},
              {"modalities", {{"vision", false}, {"audio", false}}},
              {"chat_template", nullptr}};
  if (entry.is_loaded) {
    const auto loaded = context.models.open(entry.id, request.check_alive);
    const ServedModel& model = loaded->model;
    settings["params"] = sampling_json(model.sampling);
    if (model.chat_template) answer["chat_template"] = model.chat_template->source();
    answer["reasoning_markers"] = Json::array({model.turn_format.reasoning_open, model.turn_format.reasoning_close});
    answer["system_fingerprint"] = model.fingerprint;
  }
  answer["default_generation_settings"] = std::move(settings);
  return Response::json(answer);
}

Response slots(const Request& request, Context& context) {
  const ModelEntry entry = wanted_entry(request, context);
  const std::int64_t running = entry.engine ? entry.engine->rows_running : 0;
  Json list = Json::array();
  for (std::int64_t i = 0; i < running; ++i)
    list.push_back({{"id", i}, {"is_processing", true}, {"n_ctx", entry.context_length}, {"model", entry.id}});
  return Response::json(list);
}

Response version(const Request&, Context& context) {
  const BuildInfo& build = context.server.metrics.build();
  return Response::json({{"version", build.version}, {"mlx", build.mlx}, {"device", build.backend}});
}

}  // namespace godwit::serve
