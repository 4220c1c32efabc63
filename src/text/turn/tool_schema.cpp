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

Json parameter_schema(const ToolSpec* tool, std::string_view parameter) {
  const Json properties = properties_of(tool);
  const auto found = properties.find(std::string(parameter));
  if (found == properties.end()) return nullptr;
  Json schema = *found;
  for (int left = kMaxReferences; left > 0 && schema.is_object() && schema.contains("$ref"); --left) {
    const Json& reference = schema["$ref"];
    if (!reference.is_string() || !reference.get_ref<const std::string&>().starts_with("#/")) return nullptr;
    try {
      schema = tool->parameters.at(Json::json_pointer(reference.get_ref<const std::string&>().substr(1)));
    } catch (const Json::exception&) {
      return nullptr;
    }
  }
  return schema;
}

std::vector<std::string> parameter_names(const ToolSpec* tool) {
  std::vector<std::string> names;
  const Json properties = properties_of(tool);
  for (const auto& item : properties.items()) names.push_back(item.key());
  return names;
}

}  // namespace godwit::text
