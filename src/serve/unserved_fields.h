// Fields that have a meaning in some API and none in the route at hand. Ignoring one that would change the answer breaks a
// contract in silence, so each is honoured or refused by name; fields that no API gives a meaning are ignored.
#pragma once

#include "serve/json_fields.h"

namespace godwit::serve {

// At the end of a route's reading: throws RequestError (400, code unsupported_parameter) for a field that is known to
// change answers, holds a value that asks for something, and was looked for by nobody (JsonFields::asked).
void refuse_unheeded_fields(const JsonFields& in);

// The same for fields that the route reads within `inner` only and that stand in `outer`.
void refuse_misplaced_fields(const JsonFields& outer, const JsonFields& inner, std::string_view inner_name);

}  // namespace godwit::serve
