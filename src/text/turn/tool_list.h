// The list of tools that a request brings, in OpenAI's form, as templates need it.
#pragma once

#include <string>

#include "base/json.h"

namespace godwit::text {

// With parameters for every tool, and where asked for a description, and one type at each node of the schemas.
Json complete_tools(const Json& tools, bool with_descriptions, bool with_types);
// For models whose template shows no tools: what there is and how to call it.
std::string generic_tool_prompt(const Json& tools);

}  // namespace godwit::text
