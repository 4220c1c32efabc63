// JSON as bytes to be hashed: equal values have equal text, on every machine and under every locale.
#pragma once

#include <string>

#include "base/json.h"

namespace godwit {

// No spaces; keys sorted bytewise; strings as dump_json() writes them. A number that is a whole one of 64
// bits is its digits, however the file spelled it (1, 1.0 and 1e0 are the same); any other is the shortest
// scientific form that reads back as the same double ("1e-06", "2.5e+00"), or Infinity, -Infinity, NaN.
std::string canonical_json(const Json& value);

}  // namespace godwit
