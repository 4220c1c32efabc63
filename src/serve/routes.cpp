#include "serve/routes.h"

namespace godwit::serve {
namespace {

constexpr Route kRoutes[] = {
    {"POST", "/chat/completions", chat_completions, false, /*is_generation=*/true},
    {"POST", "/completions", completions, false, /*is_generation=*/true},
    {"GET", "/models", list_models},
    {"GET", "/models/", show_model},
    {"GET", "/health", health, /*is_public=*/true},
    {"GET", "/livez", health, /*is_public=*/true},
    {"GET", "/readyz", readiness, /*is_public=*/true},
};

}  // namespace

std::span<const Route> routes() { return kRoutes; }

}  // namespace godwit::serve
