#include "text/turn/tool_schema.h"

namespace godwit::text {
namespace {

constexpr int kMaxReferences = 16;  // a schema may refer to itself

Json properties_of(const ToolSpec* tool) {
  if (tool == nullptr || !tool->parameters.is_object()) return Json::object();
  const auto found = tool->parameters.find("properties");
  return found != tool->parameters.end() && found->is_object() ? *found : Json::object();
}

}  // namespace

const ToolSpec* find_tool(const Tools& tools, std::string_view name) {
  for (const ToolSpec& tool : tools)
    if (tool.name == name) return &tool;
  return nullptr;
}

Json resolved(Json schema, const Json& root) {
  for (int left = kMaxReferences; left > 0 && schema.is_object() && schema.contains("$ref"); --left) {
    const Json& reference = schema["$ref"];
    if (!reference.is_string() || !reference.get_ref<const std::string&>().starts_with("#/")) return nullptr;
    try {
      Json target = root.at(Json::json_pointer(reference.get_ref<const std::string&>().substr(1)));
      schema = std::move(target);
    } catch (const Json::exception&) {
      return nullptr;
    }
  }
  return schema;
}

std::vector<Json> choices_of(const Json& schema) {
  if (!schema.is_object()) return {};
  const auto values = schema.find("enum");
  if (values != schema.end() && values->is_array()) return {values->begin(), values->end()};
  const auto value = schema.find("const");
  return value != schema.end() ? std::vector<Json>{*value} : std::vector<Json>();
}

std::vector<Json> options_of(const Json& schema) {
  std::vector<Json> options;
  if (!schema.is_object()) return options;
  for (const char* key : {"anyOf", "oneOf"}) {
    const auto list = schema.find(key);
    if (list != schema.end() && list->is_array() && !list->empty()) return {list->begin(), list->end()};
  }
  const auto types = schema.find("type");
  if (types == schema.end() || !types->is_array()) return options;
  for (const Json& type : *types) {
    options.push_back(schema);
    options.back()["type"] = type;
  }
  return options;
}

Json parameter_schema(const ToolSpec* tool, std::string_view parameter) {
  const Json properties = properties_of(tool);
  const auto found = properties.find(std::string(parameter));
  return found == properties.end() ? Json(nullptr) : resolved(*found, tool->parameters);
}

std::vector<std::string> parameter_names(const ToolSpec* tool) {
  std::vector<std::string> names;
  const Json properties = properties_of(tool);
  for (const auto& item : properties.items()) names.push_back(item.key());
  return names;
}

}  // namespace godwit::text
