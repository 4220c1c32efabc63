// JSON for settings that people write by hand: of two equal names in one object, one is a mistake.
#pragma once

#include "base/json.h"

namespace godwit {

// As parse_json(), but an object with two equal names is an error, too.
Json parse_unique_json(std::string_view text, std::string_view origin);

}  // namespace godwit
