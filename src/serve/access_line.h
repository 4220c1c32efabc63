// The line that a log keeps of a request: no word of prompt or answer, no header, no query.
#pragma once

#include <string>

#include "base/json.h"
#include "serve/request_record.h"

namespace godwit::serve {

// {"id", "method", "path", "route", "status", "ms", "client"}, and of a generation what it took:
// docs/operations.md.
Json access_json(const RequestRecord& record);
// The same as "req_1 POST /v1/completions 200 12 ms model=tiny prompt=3 ...".
std::string access_text(const RequestRecord& record);

}  // namespace godwit::serve
