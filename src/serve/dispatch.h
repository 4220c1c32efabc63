// From a request to its answer: access rules, the table of routes, and the one mapping of Error to an HTTP
// status.
#pragma once

#include <exception>

#include "serve/context.h"
#include "serve/http.h"

namespace godwit::serve {

// Never throws. Fills request.id and request.path. An event stream that fails half-way sends one event with a
// top-level error and no [DONE]; `request` must outlive the response.
Response dispatch(Request& request, Context& context);

// The answer to an error, in OpenAI's shape: {"error": {message, type, param, code}}.
Response error_response(const std::exception& error);
// The same for a status that the transport found out: 408, 413, 431, ...
Response error_response(int status, std::string_view code, std::string_view message);

}  // namespace godwit::serve
