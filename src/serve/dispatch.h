// From a request to its answer: access rules, the table of routes, and the one mapping of Error to an HTTP
// status.
#pragma once

#include <string_view>

#include "serve/context.h"
#include "serve/http.h"

namespace godwit::serve {

// Never throws. Fills request.id and request.path. An event stream that fails half-way sends one event that says so in
// its dialect (serve/dialect.h) and none of those that end an answer; `request` must outlive the response.
Response dispatch(Request& request, Context& context);

// The answer to what the transport found out, in OpenAI's shape: 408, 413, 431, ...
Response error_response(int status, std::string_view code, std::string_view message);

}  // namespace godwit::serve
