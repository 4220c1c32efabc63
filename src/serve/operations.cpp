// GET /metrics, GET /stats, POST /admin/...: for those who run the server. Answered from counters and
// snapshots, never behind the engine.
#include <algorithm>

#include "serve/endpoints.h"
#include "serve/json_fields.h"
#include "serve/request_error.h"

namespace godwit::serve {
namespace {

Json engine_json(const decode::EngineStats& stats) {
  return {{"rows_running", stats.rows_running},
          {"rows_paused", stats.rows_paused},
          {"rows_waiting", stats.rows_waiting},
          {"requests", stats.requests},
          {"finished", stats.finished},
          {"cancelled", stats.cancelled},
          {"failed", stats.failed},
          {"steps", stats.steps},
          {"prompt_tokens", stats.prompt_tokens},
          {"answer_tokens", stats.answer_tokens},
          {"preemptions", stats.preemptions},
          {"prefix_hits", stats.prefix_hits},
          {"prefix_tokens", stats.prefix_tokens},
          {"queue_seconds", stats.queue_seconds},
          {"state_bytes", stats.resident_bytes},
          {"state_budget_bytes", stats.budget_bytes}};
}

// Here nothing stands for whatever there is.
std::string named_model(const Request& request) {
  const std::string name = model_name(parse_body(request.body));
  if (name.empty()) bad_field("model", "is needed");
  return name;
}

}  // namespace

Response metrics(const Request&, Context& context) {
  Response response{.body = context.server.metrics.text(context.models.list())};
  response.headers.add("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  return response;
}

Response stats(const Request&, Context& context) {
  const BuildInfo& build = context.server.metrics.build();
  Json models = Json::array();
  for (const ModelEntry& model : context.models.list())
    models.push_back({{"id", model.id},
                      {"is_loaded", model.is_loaded},
                      {"context_length", model.context_length},
                      {"size_bytes", model.size_bytes},
                      {"engine", model.engine ? engine_json(*model.engine) : Json(nullptr)}});
  const std::string_view state = context.server.draining ? "draining" : context.server.loading ? "loading" : "ready";
  return Response::json({{"version", build.version},
                         {"mlx", build.mlx},
                         {"backend", build.backend},
                         {"status", state},
                         {"uptime_seconds", context.server.metrics.uptime_seconds()},
                         {"resident_bytes", resident_bytes()},
                         {"models", std::move(models)}});
}

Response load_model(const Request& request, Context& context) {
  const auto loaded = context.models.open(named_model(request), request.check_alive);
  return Response::json({{"model", loaded->model.id}, {"is_loaded", true}});
}

Response unload_model(const Request& request, Context& context) {
  const std::string name = named_model(request);
  return Response::json({{"model", name}, {"was_loaded", context.models.unload(name)}});
}

Response flush_cache(const Request& request, Context& context) {
  const Json body = request.body.empty() ? Json::object() : parse_body(request.body);
  const std::string name = model_name(body);
  const bool disk_too = JsonFields(body).boolean("disk").value_or(false);
  const std::vector<ModelEntry> known = context.models.list();
  if (!name.empty() && std::ranges::none_of(known, [&](const ModelEntry& one) { return one.is_named(name); }))
    unknown_model(name, known);
  Json flushed = Json::array();
  for (const ModelEntry& entry : known) {
    if (!entry.is_loaded || (!name.empty() && !entry.is_named(name))) continue;
    const auto bytes = context.models.open(entry.id, request.check_alive)->generator.forget_prompts(disk_too);
    if (bytes) flushed.push_back({{"model", entry.id}, {"bytes", *bytes}});
  }
  return Response::json({{"flushed", std::move(flushed)}});
}

Response drain(const Request&, Context& context) {
  if (context.server.hooks.drain) context.server.hooks.drain();
  return Response::json({{"status", "draining"}}, 202);
}

}  // namespace godwit::serve
