#include "text/turn/argument_grammar.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "text/turn/coerce.h"
#include "text/turn/strict_arguments.h"
#include "text/turn/tool_schema.h"

namespace godwit::text {
namespace {

bool is_required(const Json& schema, const std::string& name) {
  const auto list = schema.find("required");
  return list != schema.end() && list->is_array() && std::ranges::find(*list, Json(name)) != list->end();
}

// An option refers to the definitions of the schema that it is one of.
std::vector<Json> options_with_definitions(const Json& schema) {
  std::vector<Json> options = options_of(schema);
  for (Json& option : options)
    for (const char* key : {"$defs", "definitions"})
      if (option.is_object() && schema.contains(key)) option[key] = schema[key];
  return options;
}

bool is_text(const Json& schema) {
  const std::vector<Json> choices = choices_of(schema), options = options_of(schema);
  if (!choices.empty()) return std::ranges::all_of(choices, [](const Json& value) { return value.is_string(); });
  if (!options.empty()) return std::ranges::any_of(options, is_text);
  return !is_typed(schema);
}

std::string tagged_value(GrammarText& grammar, const Json& schema, const TaggedArguments& tags) {
  const std::string close = lark_string(tags.close);
  std::vector<std::string> values;
  for (const Json& value : choices_of(schema))
    values.push_back(lark_string(value.is_string() ? value.get<std::string>() : dump_json(value)));
  if (!values.empty()) return alternatives(values) + " " + close;
  if (!is_text(schema))
    for (const Json& option : options_with_definitions(schema)) values.push_back(tagged_value(grammar, option, tags));
  if (!values.empty()) return alternatives(values);
  if (is_typed(schema)) return grammar.new_rule("value", grammar.json(schema)) + " " + close;
  if (!tags.has_cdata) return grammar.text_to(tags.close);
  return fmt::format("( /[^<&\\n]*/ {} | \"<![CDATA[\" {} )", close, grammar.text_to("]]>" + tags.close));
}

// Rules for literals of one notation.
class Literals {
 public:
  Literals(GrammarText& grammar, const LiteralNotation& notation, const ToolSpec& tool)
      : grammar_(grammar), notation_(notation), tool_(tool) {}

  std::string value(const Json& unresolved, int depth) {
    const Json schema = resolved(unresolved, tool_.parameters);
    if (!schema.is_object() || depth > kMostLiteralDepth) return any();
    std::vector<std::string> values;
    for (const Json& choice : choices_of(schema)) values.push_back(constant(choice));
    if (values.empty())
      for (const Json& option : options_of(schema)) values.push_back(value(option, depth + 1));
    if (!values.empty()) return alternatives(values);
    const Json type = schema.value("type", Json());
    if (type == "string") return string();
    if (type == "integer") return "/-?(0|[1-9][0-9]*)/";
    if (type == "number") return "/-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?/";
    if (type == "boolean") return notation_.is_python ? "(\"True\" | \"False\")" : "(\"true\" | \"false\")";
    if (type == "null") return null();
    if (type == "array") {
      const std::string item = grammar_.new_rule("item", value(schema.value("items", Json()), depth + 1));
      return fmt::format("( \"[\" ( {0} ( {1} {0} )* )? \"]\" )", item, comma());
    }
    if (type == "object" && schema.contains("properties"))
      return fmt::format("( \"{{\" {} \"}}\" )", members(schema, depth, false));
    return type == "object" ? any_object() : any();
  }

  // `key value, key value` in the order of the schema (Gemma's: sorted), optional ones left out at will.
  std::string members(const Json& schema, int depth, bool is_call) {
    std::vector<std::string> names;
    for (const auto& item : schema["properties"].items()) names.push_back(item.key());
    if (!notation_.is_python) std::ranges::sort(names);
    std::string first = "\"\"", rest = "\"\"";
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
      const bool needs = is_required(schema, *name);
      const std::string one = grammar_.new_rule(
          "member", lark_string(key(*name, is_call)) + " " + value(schema["properties"][*name], depth + 1));
      const std::string more = fmt::format("{} {} {}", comma(), one, rest);
      first = grammar_.new_rule("first", fmt::format("{} {}{}", one, rest, needs ? "" : " | " + first));
      rest = grammar_.new_rule("rest", more + (needs ? "" : " | " + rest));
    }
    return first;
  }

  std::string any() {
    if (!grammar_.has_rule("any_literal")) {
      const std::string name = notation_.is_python ? string() : "/[A-Za-z_][A-Za-z0-9_]*/";
      const std::string sign = notation_.is_python ? "\": \"" : "\":\"";
      grammar_.rule("any_object", fmt::format("\"{{\" ( {0} {1} any_literal ( {2} {0} {1} any_literal )* )? \"}}\"", name,
                                              sign, comma()));
      grammar_.rule("any_literal",
                    fmt::format("{} | /-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?/ | {} | {} | \"[\" ( any_literal ( {} "
                                "any_literal )* )? \"]\" | any_object",
                                string(), null(), notation_.is_python ? "\"True\" | \"False\"" : "\"true\" | \"false\"",
                                comma()));
    }
    return "any_literal";
  }

  std::string any_object() {
    any();
    return "any_object";
  }

 private:
  std::string key(const std::string& name, bool is_call) const {
    if (!notation_.is_python) return name + ":";
    return is_call ? name + "=" : lark_string(name) + ": ";
  }

  std::string comma() const { return notation_.is_python ? "\", \"" : "\",\""; }
  std::string null() const { return notation_.is_python ? "\"None\"" : "\"null\""; }

  std::string string() {
    if (notation_.is_python) return "(/\"([^\"\\\\\\n]|\\\\[^\\n])*\"/ | /'([^'\\\\\\n]|\\\\[^\\n])*'/)";
    return grammar_.marker(notation_.quote) + " " + grammar_.text_to(notation_.quote);
  }

  std::string constant(const Json& value) {
    if (!value.is_string()) {
      if (value.is_boolean() && notation_.is_python) return value.get<bool>() ? "\"True\"" : "\"False\"";
      return value.is_null() ? null() : lark_string(dump_json(value));
    }
    const auto& text = value.get_ref<const std::string&>();
    if (notation_.is_python) return lark_string(lark_string(text));
    const std::string quote = grammar_.marker(notation_.quote);
    return quote + " " + (text.empty() ? "" : lark_string(text) + " ") + quote;
  }

  GrammarText& grammar_;
  const LiteralNotation& notation_;
  const ToolSpec& tool_;
};

// A function has the parameters that it names. JSON Schema allows any others beside them, and a small model that
// may go on after the last one does so without end.
bool has_only_named_properties(const Json& schema) {
  constexpr std::array kOthers = {"additionalProperties", "patternProperties", "unevaluatedProperties",
                                  "allOf", "anyOf", "oneOf", "$ref"};
  return schema.contains("properties") &&
         std::none_of(kOthers.begin(), kOthers.end(), [&](const char* key) { return schema.contains(key); });
}

}  // namespace

Json argument_schema(const ToolSpec& tool) {
  Json schema = tool.parameters.is_object() ? tool.parameters : Json::object();
  if (schema.empty()) schema["properties"] = Json::object();
  if (!schema.contains("type")) schema["type"] = "object";
  if (!schema.contains("properties") && schema.value("additionalProperties", Json()) == false)
    schema["properties"] = Json::object();
  if (has_only_named_properties(schema)) schema["additionalProperties"] = false;
  return schema;
}

Json property_schema(const Json& schema, const std::string& name) {
  const ToolSpec owner{.name = "", .parameters = schema};
  Json property = parameter_schema(&owner, name);
  for (const char* key : {"$defs", "definitions"})
    if (property.is_object() && schema.contains(key)) property[key] = schema[key];
  return property;
}

std::string tagged_arguments(GrammarText& grammar, const ToolSpec& tool, const TaggedArguments& tags) {
  const Json schema = argument_schema(tool);
  if (tool.is_strict) need_strict_texts({.name = tool.name, .parameters = schema});
  std::string all;
  if (schema.contains("properties") && schema["properties"].is_object())
    for (const auto& item : schema["properties"].items()) {
      const Json property = property_schema(schema, item.key());
      const std::string type = tags.names_strings ? fmt::format("\" string=\"{}", is_text(property)) : "";
      const std::string one =
          grammar.new_rule("argument", lark_string(tags.open + item.key() + type + tags.key_end) + " " +
                                           tagged_value(grammar, property, tags));
      all += " " + one + (is_required(schema, item.key()) ? "" : "?");
    }
  else
    all = fmt::format(" ( {} /[A-Za-z0-9_.\\-]+/ {} {} )*", lark_string(tags.open),
                      lark_string((tags.names_strings ? "\" string=\"true" : "") + tags.key_end),
                      grammar.text_to(tags.close));
  return grammar.new_rule("arguments", all.empty() ? "\"\"" : all);
}

std::string literal_arguments(GrammarText& grammar, const ToolSpec& tool, const LiteralNotation& notation) {
  const Json schema = argument_schema(tool);
  if (tool.is_strict) need_strict_literals({.name = tool.name, .parameters = schema});
  Literals literals(grammar, notation, tool);
  const std::string open = notation.is_python ? "\"(\"" : "\"{\"", close = notation.is_python ? "\")\"" : "\"}\"";
  if (schema.contains("properties") && schema["properties"].is_object())
    return grammar.new_rule("arguments", open + " " + literals.members(schema, 0, true) + " " + close);
  if (!notation.is_python) return literals.any_object();
  const std::string one = grammar.new_rule("member", "/[A-Za-z_][A-Za-z0-9_]*/ \"=\" " + literals.any());
  return grammar.new_rule("arguments", fmt::format("{0} ( {1} ( \", \" {1} )* )? {2}", open, one, close));
}

}  // namespace godwit::text
