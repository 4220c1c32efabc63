#include "serve/routes.h"

namespace godwit::serve {
namespace {

constexpr Route kRoutes[] = {
    {"POST", "/chat/completions", chat_completions, false, /*is_generation=*/true},
    {"POST", "/completions", completions, false, /*is_generation=*/true},
    {"POST", "/embeddings", embeddings, false, /*is_generation=*/true},
    {"GET", "/props", props},
    {"GET", "/slots", slots},
    {"GET", "/version", version},
    {"POST", "/tokenize", tokenize},
    {"POST", "/detokenize", detokenize},
    {"POST", "/apply-template", apply_template},
    {"POST", "/completion", native_completion, false, /*is_generation=*/true},
    {"POST", "/infill", infill, false, /*is_generation=*/true},
    {"POST", "/rerank", rerank},
    {"POST", "/reranking", rerank},
    {"POST", "/messages", messages, false, /*is_generation=*/true},
    {"POST", "/messages/count_tokens", count_message_tokens},
    {"POST", "/api/chat", ollama_chat, false, /*is_generation=*/true},
    {"POST", "/api/generate", ollama_generate, false, /*is_generation=*/true},
    {"POST", "/api/embed", ollama_embed, false, /*is_generation=*/true},
    {"POST", "/api/embeddings", ollama_embeddings, false, /*is_generation=*/true},
    {"GET", "/api/tags", ollama_tags},
    {"POST", "/api/show", ollama_show},
    {"GET", "/api/ps", ollama_running},
    {"GET", "/api/version", ollama_version},
    {"POST", "/api/pull", ollama_unserved},
    {"POST", "/api/push", ollama_unserved},
    {"POST", "/api/create", ollama_unserved},
    {"POST", "/api/copy", ollama_unserved},
    {"DELETE", "/api/delete", ollama_unserved},
    {"POST", "/responses", create_response, false, /*is_generation=*/true},
    {"POST", "/responses/input_tokens", count_input_tokens},
    {"POST", "/responses/", change_response},
    {"GET", "/responses/", show_response},
    {"DELETE", "/responses/", delete_response},
    {"GET", "/models", list_models},
    {"GET", "/models/", show_model},
    {"GET", "/health", health, /*is_public=*/true},
    {"GET", "/healthz", health, /*is_public=*/true},
    {"GET", "/livez", liveness, /*is_public=*/true},
    {"GET", "/readyz", readiness, /*is_public=*/true},
    {"GET", "/", web_index, /*is_public=*/true},
    {"GET", "/assets/", web_asset, /*is_public=*/true},
    {"GET", "/metrics", metrics},
    {"GET", "/stats", stats},
    {"POST", "/admin/cache/flush", flush_cache, false, false, /*is_admin=*/true},
    {"POST", "/admin/drain", drain, false, false, /*is_admin=*/true},
    {"POST", "/admin/models/load", load_model, false, false, /*is_admin=*/true},
    {"POST", "/admin/models/unload", unload_model, false, false, /*is_admin=*/true},
};

}  // namespace

std::span<const Route> routes() { return kRoutes; }

}  // namespace godwit::serve
