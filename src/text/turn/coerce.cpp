#include "text/turn/coerce.h"

#include <array>

#include "text/turn/literal_reader.h"

namespace godwit::text {
namespace {

enum Types : unsigned { none = 0, string = 1, number = 2, boolean = 4, null = 8, object = 16, array = 32 };

constexpr int kMaxDepth = 16;

unsigned type_named(const Json& name) {
  static const std::array<std::pair<const char*, unsigned>, 7> kNames = {{{"string", string},
                                                                         {"integer", number},
                                                                         {"number", number},
                                                                         {"boolean", boolean},
                                                                         {"null", null},
                                                                         {"object", object},
                                                                         {"array", array}}};
  for (const auto& [known, type] : kNames)
    if (name == known) return type;
  return none;
}

unsigned type_of(const Json& value) {
  if (value.is_string()) return string;
  if (value.is_number()) return number;
  if (value.is_boolean()) return boolean;
  if (value.is_null()) return null;
  return value.is_object() ? object : array;
}

unsigned types_of(const Json& schema, int depth = 0) {
  unsigned types = none;
  if (!schema.is_object() || depth > kMaxDepth) return types;
  if (const auto type = schema.find("type"); type != schema.end()) {
    types |= type_named(*type);
    if (type->is_array())
      for (const Json& one : *type) types |= type_named(one);
  }
  if (types == none) {
    if (const auto values = schema.find("enum"); values != schema.end() && values->is_array())
      for (const Json& value : *values) types |= type_of(value);
    if (schema.contains("const")) types |= type_of(schema["const"]);
    if (schema.contains("properties")) types |= object;
    if (schema.contains("items")) types |= array;
    for (const char* key : {"anyOf", "oneOf", "allOf"})
      if (const auto list = schema.find(key); list != schema.end() && list->is_array())
        for (const Json& one : *list) types |= types_of(one, depth + 1);
  }
  if (types != none && schema.contains("nullable") && schema["nullable"] == true) types |= null;
  return types;
}

// The JSON library takes a NUL for the end of its input.
bool is_json(std::string_view text) { return text.find('\0') == std::string_view::npos && Json::accept(text); }

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \n\r\t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \n\r\t") - first + 1);
}

// Objects and arrays: as they stand when they are JSON, else mended.
std::string structure(std::string_view text, bool only_valid) {
  if (is_json(text)) return std::string(text);
  return only_valid ? std::string() : literal_to_json(text).value_or("");
}

}  // namespace

bool is_text_schema(const Json& schema) {
  const unsigned types = types_of(schema);
  return types == none || types == string;
}

std::string text_to_json(std::string_view text, const Json& schema) {
  const unsigned types = types_of(schema);
  const std::string_view word = trimmed(text);
  const std::string plain = bare_to_json(word);
  const bool has_string = (types & string) != 0;
  if ((types & null) != 0 && plain == "null") return plain;
  if ((types & boolean) != 0 && !has_string) {
    if (plain == "true" || word == "TRUE") return "true";
    if (plain == "false" || word == "FALSE") return "false";
  }
  if ((types & number) != 0 && !has_string && is_json_number(plain)) return plain;
  const bool is_structure = ((types & object) != 0 && word.starts_with('{')) ||
                            ((types & array) != 0 && word.starts_with('['));
  if (is_structure)
    if (std::string json = structure(word, has_string); !json.empty()) return json;
  return json_string(text);
}

std::string any_to_json(std::string_view text) {
  const std::string_view word = trimmed(text);
  return is_json(word) ? std::string(word) : json_string(text);
}

}  // namespace godwit::text
