// What the schemas of the tools say about single arguments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/turn/turn_format.h"

namespace godwit::text {

using Tools = std::vector<ToolSpec>;

const ToolSpec* find_tool(const Tools& tools, std::string_view name);  // null: none
// The schema of one argument; null: the tool does not describe it. References within the schema are followed.
Json parameter_schema(const ToolSpec* tool, std::string_view parameter);
// The names of the arguments in the order of the schema.
std::vector<std::string> parameter_names(const ToolSpec* tool);

}  // namespace godwit::text
