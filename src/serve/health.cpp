// GET /health, /livez, /readyz: for orchestrators. Public, and never behind the engine.
#include "serve/endpoints.h"

namespace godwit::serve {

Response health(const Request&, Context&) { return Response::json({{"status", "ok"}}); }

Response readiness(const Request&, Context& context) {
  if (!context.draining) return Response::json({{"status", "ready"}});
  return Response::json({{"status", "draining"}}, 503);
}

}  // namespace godwit::serve
