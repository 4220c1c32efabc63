// GET /v1/models, GET /v1/models/{id}. Answered from values, so never behind the engine.
#include "serve/anthropic_models.h"
#include "serve/endpoints.h"
#include "serve/request_error.h"

namespace godwit::serve {
namespace {

Json or_null(std::int64_t value) { return value > 0 ? Json(value) : Json(nullptr); }

Json model_json(const ModelEntry& model, const std::string& name) {
  return {{"id", name},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "godwit"},
          {"is_loaded", model.is_loaded},
          {"max_model_len", model.context_length},
          {"context_length", model.context_length},
          {"capabilities", model.capabilities},
          {"modalities", {{"input", {"text"}}, {"output", {"text"}}}},
          {"meta",
           {{"n_vocab", or_null(model.vocabulary)},
            {"n_ctx", model.context_length},
            {"n_params", or_null(model.parameters)},
            {"size", or_null(model.size_bytes)},
            {"quantization", model.quantization}}}};
}

bool is_for_anthropic(const Request& request) { return request.headers.find("anthropic-version").has_value(); }

}  // namespace

Response list_models(const Request& request, Context& context) {
  if (is_for_anthropic(request)) return Response::json(anthropic_model_list(context.models.list()));
  Json data = Json::array();
  for (const ModelEntry& entry : context.models.list()) {
    data.push_back(model_json(entry, entry.id));
    for (const auto& alias : entry.aliases) data.push_back(model_json(entry, alias));
  }
  return Response::json({{"object", "list"}, {"data", std::move(data)}});
}

Response show_model(const Request& request, Context& context) {
  const std::vector<ModelEntry> known = context.models.list();
  for (const ModelEntry& entry : known) {
    if (!entry.is_named(request.rest)) continue;
    return Response::json(is_for_anthropic(request) ? anthropic_model_json(entry, request.rest)
                                                    : model_json(entry, request.rest));
  }
  unknown_model(request.rest, known);
}

}  // namespace godwit::serve
