// GET /health, /livez, /readyz and their aliases: for orchestrators. Public, and never behind the engine.
#include <algorithm>

#include "serve/endpoints.h"
#include "serve/engine_pulse.h"

namespace godwit::serve {

namespace {

// llama.cpp's words, which its clients look for while a model is being loaded.
Response unavailable(std::string_view message) {
  return Response::json({{"error", {{"code", 503}, {"message", message}, {"type", "unavailable_error"}}}}, 503);
}

}  // namespace

Response health(const Request& request, Context& context) {
  if (context.server.draining) return unavailable("The server is shutting down");
  if (context.server.loading) return unavailable("Loading model");
  return liveness(request, context);
}

Response liveness(const Request&, Context& context) {
  const std::vector<ModelEntry> models = context.models.list();
  const auto stuck = std::ranges::find_if(
      models, [](const ModelEntry& model) { return model.engine && is_stuck(*model.engine); });
  if (stuck == models.end()) return Response::json({{"status", "ok"}});
  return Response::json({{"status", "stuck"}, {"model", stuck->id}}, 503);
}

Response readiness(const Request&, Context& context) {
  if (context.server.draining) return Response::json({{"status", "draining"}}, 503);
  if (context.server.loading) return Response::json({{"status", "loading"}}, 503);
  return Response::json({{"status", "ready"}});
}

}  // namespace godwit::serve
