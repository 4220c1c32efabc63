// Values that a model writes as plain text, as JSON of the type that the tool's schema names.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace godwit::text {

// Whether the schema takes strings and nothing else, so that any text is the value as it stands. A schema that
// names no type does.
bool is_text_schema(const Json& schema);
// Of a type that the schema allows; a text that is none of them becomes a string. A schema that allows strings
// beside other types keeps the text a string unless it spells null, an object or an array that is allowed.
std::string text_to_json(std::string_view text, const Json& schema);
// The text as JSON where it is JSON, else as a string.
std::string any_to_json(std::string_view text);

}  // namespace godwit::text
