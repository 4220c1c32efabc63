// GET /v1/models, GET /v1/models/{id}. Answered from values, so never behind the engine.
#include "serve/endpoints.h"
#include "serve/request_error.h"

namespace godwit::serve {
namespace {

Json model_json(const ServedModel& model, const std::string& name) {
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
  Json data = Json::array({model_json(context.model, context.model.id)});
  for (const auto& alias : context.model.aliases) data.push_back(model_json(context.model, alias));
  return Response::json({{"object", "list"}, {"data", std::move(data)}});
}

Response show_model(const Request& request, Context& context) {
  if (!context.model.is_named(request.rest))
    throw RequestError(ErrorCode::not_found, fmt::format("the model '{}' is not loaded", request.rest),
                       {.param = "model", .code = "model_not_found"});
  return Response::json(model_json(context.model, request.rest));
}

}  // namespace godwit::serve
