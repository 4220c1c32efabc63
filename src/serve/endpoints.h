// The endpoints, one function each; routes.cpp says where they live. Invalid requests throw Error.
#pragma once

#include "serve/context.h"
#include "serve/http.h"

namespace godwit::serve {

Response chat_completions(const Request& request, Context& context);
Response completions(const Request& request, Context& context);
Response list_models(const Request& request, Context& context);
Response show_model(const Request& request, Context& context);
Response health(const Request& request, Context& context);     // 200 as long as the server answers
Response readiness(const Request& request, Context& context);  // 503 while draining

}  // namespace godwit::serve
