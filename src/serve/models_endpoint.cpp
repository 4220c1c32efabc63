// GET /v1/models, GET /v1/models/{id}. Answered from values, so never behind the engine.
#include <algorithm>

#include "serve/endpoints.h"
#include "serve/request_error.h"

namespace godwit::serve {
namespace {

Json model_json(const ModelEntry& model, const std::string& name) {
  return {{"id", name},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "godwit"},
          {"max_model_len", model.context_length},
          {"context_length", model.context_length},
          {"meta", {{"n_vocab", model.vocabulary}, {"n_ctx", model.context_length}}}};
}

}  // namespace

Response list_models(const Request&, Context& context) {
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
    if (entry.id == request.rest || std::ranges::find(entry.aliases, request.rest) != entry.aliases.end())
      return Response::json(model_json(entry, request.rest));
  }
  unknown_model(request.rest, known);
}

}  // namespace godwit::serve
