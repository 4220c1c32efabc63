#include "text/turn/strict_arguments.h"

#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "text/turn/coerce.h"
#include "text/turn/tool_schema.h"

namespace godwit::text {
namespace {

constexpr std::array kBounds = {"allOf",   "minLength", "maxLength",         "pattern",          "format",     "multipleOf",
                                "minimum", "maximum",   "exclusiveMinimum",  "exclusiveMaximum", "minItems",   "maxItems",
                                "prefixItems",          "patternProperties", "minProperties",    "maxProperties"};

class StrictCheck {
 public:
  explicit StrictCheck(const ToolSpec& tool) : tool_(tool) {}

  // The parameters themselves: by name, or any.
  void parameters() const {
    const Json& schema = tool_.parameters;
    if (!schema.is_object()) return;
    bounds(schema, "#");
    for (const char* key : {"$ref", "anyOf", "oneOf", "enum", "const"})
      if (schema.contains(key)) refuse("#", key);
    if (!schema.contains("properties")) others(schema, "#");
  }

  void text(const Json& unresolved, const std::string& path) const {
    const Json schema = resolved(unresolved, tool_.parameters);
    if (unresolved.is_object() && !schema.is_object()) refuse(path, "$ref");
    if (!schema.is_object()) return;
    for (const Json& option : options_of(schema)) text(option, path);
    if (is_typed(schema) || (!options_of(schema).empty() && choices_of(schema).empty())) return;
    bounds(schema, path);
    needs_type(schema, path);
  }

  void literal(const Json& unresolved, const std::string& path, int depth) const {
    const Json schema = resolved(unresolved, tool_.parameters);
    if (schema == false || (unresolved.is_object() && !schema.is_object())) refuse(path, "$ref");
    if (!schema.is_object()) return;
    if (depth > kMostLiteralDepth)
      refuse_strict(tool_, fmt::format("{}: values deeper than {} cannot be held to a schema", path, kMostLiteralDepth));
    bounds(schema, path);
    if (!choices_of(schema).empty()) return;
    const std::vector<Json> options = options_of(schema);
    for (const Json& option : options) literal(option, path, depth + 1);
    if (!options.empty()) return;
    needs_type(schema, path);
    if (schema.contains("items")) literal(schema["items"], path + "/items", depth + 1);
    if (schema.contains("properties") && schema["properties"].is_object())
      for (const auto& item : schema["properties"].items())
        literal(item.value(), path + "/properties/" + item.key(), depth + 1);
    else
      others(schema, path);
  }

 private:
  [[noreturn]] void refuse(const std::string& path, std::string_view keyword) const {
    refuse_strict(tool_, fmt::format("{}/{}: not enforced in the form in which this model writes arguments", path, keyword));
  }

  void bounds(const Json& schema, const std::string& path) const {
    for (const char* key : kBounds)
      if (schema.contains(key)) refuse(path, key);
  }

  // A value without a type may be anything, whatever is said of its parts.
  void needs_type(const Json& schema, const std::string& path) const {
    if (schema.contains("type") || !choices_of(schema).empty()) return;
    for (const char* key : {"properties", "items", "required", "additionalProperties"})
      if (schema.contains(key)) refuse(path, key);
  }

  // Members that are not named may have any value.
  void others(const Json& schema, const std::string& path) const {
    for (const char* key : {"additionalProperties", "required"})
      if (schema.contains(key) && schema[key] != true && schema[key] != Json::array()) refuse(path, key);
  }

  const ToolSpec& tool_;
};

const Json& properties_of(const ToolSpec& tool) {
  static const Json kNone = Json::object();
  if (!tool.parameters.is_object()) return kNone;
  const auto found = tool.parameters.find("properties");
  return found != tool.parameters.end() && found->is_object() ? *found : kNone;
}

}  // namespace

bool is_typed(const Json& schema) {
  return schema.is_object() && !is_text_schema(schema) && schema.contains("type") && schema["type"].is_string();
}

void need_strict_texts(const ToolSpec& tool) {
  const StrictCheck check(tool);
  check.parameters();
  for (const auto& item : properties_of(tool).items()) check.text(item.value(), "#/properties/" + item.key());
}

void need_strict_literals(const ToolSpec& tool) {
  const StrictCheck check(tool);
  check.parameters();
  for (const auto& item : properties_of(tool).items()) check.literal(item.value(), "#/properties/" + item.key(), 0);
}

void refuse_strict(const ToolSpec& tool, std::string_view why) {
  fail(ErrorCode::invalid_argument, "tools", "the tool '{}' is strict, and its parameters cannot be enforced: {}", tool.name,
       why);
}

}  // namespace godwit::text
