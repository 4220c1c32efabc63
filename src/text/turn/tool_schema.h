// What the schemas of the tools say about single arguments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/turn/turn_format.h"

namespace godwit::text {

using Tools = std::vector<ToolSpec>;

const ToolSpec* find_tool(const Tools& tools, std::string_view name);  // null: none
// The schema that a "$ref" into `root` means, as far as references lead; null: nowhere. Others come as they are.
Json resolved(Json schema, const Json& root);
// The values of its enum or const; empty: it has neither.
std::vector<Json> choices_of(const Json& schema);
// Its kinds of value one by one: the options of anyOf or oneOf, else the types of a list of types; empty: it is one kind.
std::vector<Json> options_of(const Json& schema);
// The schema of one argument; null: the tool does not describe it. References within the schema are followed.
Json parameter_schema(const ToolSpec* tool, std::string_view parameter);
// The names of the arguments in the order of the schema.
std::vector<std::string> parameter_names(const ToolSpec* tool);

}  // namespace godwit::text
