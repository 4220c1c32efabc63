// GET /health, /livez, /readyz: for orchestrators. Public, and never behind the engine.
#include <algorithm>

#include "serve/endpoints.h"
#include "serve/engine_pulse.h"

namespace godwit::serve {

Response health(const Request&, Context& context) {
  const std::vector<ModelEntry> models = context.models.list();
  const auto stuck = std::ranges::find_if(
      models, [](const ModelEntry& model) { return model.engine && is_stuck(*model.engine); });
  if (stuck == models.end()) return Response::json({{"status", "ok"}});
  return Response::json({{"status", "stuck"}, {"model", stuck->id}}, 503);
}

Response readiness(const Request&, Context& context) {
  if (context.draining) return Response::json({{"status", "draining"}}, 503);
  if (context.loading) return Response::json({{"status", "loading"}}, 503);
  return Response::json({{"status", "ready"}});
}

}  // namespace godwit::serve
