// Fields of other servers and of later versions that would change the answer. Ignoring them would break a
// contract in silence, so they are refused unless they hold the value that asks for nothing.
#pragma once

#include "serve/json_fields.h"

namespace godwit::serve {

// Throws RequestError (400, code unsupported_parameter) naming the field.
void refuse_unserved_fields(const JsonFields& in);

}  // namespace godwit::serve
