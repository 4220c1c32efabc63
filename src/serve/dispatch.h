// From a request to its answer: access rules, the table of routes, and what is noted of each request.
#pragma once

#include "serve/context.h"
#include "serve/http.h"

namespace godwit::serve {

// Never throws. Fills request.id and request.path. An event stream that fails half-way sends one event that says so in
// its dialect (serve/dialect.h) and none of those that end an answer; `request` must outlive the response. A request that
// the transport refused gets that refusal. Whoever sends the response calls `ended`.
Response dispatch(Request& request, const Context& context);

}  // namespace godwit::serve
