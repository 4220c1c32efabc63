#include "text/turn/tool_list.h"

#include "text/turn/call_text.h"

namespace godwit::text {
namespace {

constexpr int kMaxDepth = 32;

const char* type_of(const Json& value) {
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "boolean";
  if (value.is_number_integer()) return "integer";
  if (value.is_number()) return "number";
  return value.is_array() ? "array" : "object";
}

// A type for a node that names none, and one for a node that names several.
void name_type(Json& schema) {
  Json& type = schema["type"];
  if (type.is_array()) {
    Json first = "string";
    for (const Json& one : type)
      if (one != "null") {
        first = one;
        break;
      }
    for (const Json& one : Json(type))
      if (one == "null") schema["nullable"] = true;
    schema["type"] = first;
    return;
  }
  if (type.is_string()) return;
  type = "string";
  if (schema.contains("properties")) {
    schema["type"] = "object";
  } else if (schema.contains("items")) {
    schema["type"] = "array";
  } else if (schema.contains("enum") && schema["enum"].is_array() && !schema["enum"].empty()) {
    schema["type"] = type_of(schema["enum"][0]);
  }
  for (const char* key : {"anyOf", "oneOf", "allOf"})
    if (schema.contains(key) && schema[key].is_array())
      for (const Json& one : schema[key])
        if (one.is_object() && one.contains("type") && one["type"].is_string() && one["type"] != "null") {
          schema["type"] = one["type"];
          return;
        }
}

void name_types(Json& schema, int depth = 0) {
  if (!schema.is_object() || depth > kMaxDepth) return;
  name_type(schema);
  if (schema.contains("properties") && schema["properties"].is_object())
    for (auto& item : schema["properties"].items()) name_types(item.value(), depth + 1);
  if (schema.contains("items")) name_types(schema["items"], depth + 1);
}

}  // namespace

Json complete_tools(const Json& tools, bool with_descriptions, bool with_types) {
  Json out = tools;
  for (Json& tool : out) {
    if (!tool.is_object() || !tool.contains("function") || !tool["function"].is_object()) continue;
    Json& function = tool["function"];
    if (!function.contains("parameters") || !function["parameters"].is_object() || function["parameters"].empty())
      function["parameters"] = {{"type", "object"}, {"properties", Json::object()}};
    if (with_descriptions && !function.contains("description")) function["description"] = "";
    if (with_types) name_types(function["parameters"]);
  }
  return out;
}

std::string generic_tool_prompt(const Json& tools) {
  std::string text = "You can call these functions, one JSON object each:\n";
  for (const Json& tool : tools)
    text += spaced_json(tool.is_object() && tool.contains("function") ? tool["function"] : tool) + "\n";
  return text +
         "\nTo call one, answer with this JSON object and nothing else:\n"
         "{\"tool_call\": {\"name\": \"...\", \"arguments\": {...}}}\n"
         "To call several, answer with {\"tool_calls\": [{\"name\": \"...\", \"arguments\": {...}}, ...]}. "
         "To answer in words, answer with {\"response\": \"...\"}.";
}

}  // namespace godwit::text
