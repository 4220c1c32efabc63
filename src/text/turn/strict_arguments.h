// What a grammar of arguments can hold a model to where they are no JSON. A strict tool that asks for more is refused.
#pragma once

#include "text/turn/turn_format.h"

namespace godwit::text {

inline constexpr int kMostLiteralDepth = 8;  // deeper values may be any: a schema may refer to itself

// Whether a value between tags is JSON of this schema, and not plain text.
bool is_typed(const Json& schema);

// Throw Error{invalid_argument} that names the tool, and path and keyword of what its grammar would leave out: of values
// between tags, and of literals.
void need_strict_texts(const ToolSpec& tool);
void need_strict_literals(const ToolSpec& tool);

[[noreturn]] void refuse_strict(const ToolSpec& tool, std::string_view why);

}  // namespace godwit::text
