#include "serve/structured_output.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "decode/grammar_source.h"
#include "serve/request_error.h"

namespace godwit::serve {
namespace {

using text::GrammarKind;
using text::GrammarSpec;

// The one that asks, and what for. A second is refused.
class Wish {
 public:
  void add(const std::string& param, std::optional<GrammarSpec> spec) {
    if (!spec) return;
    if (wish_)
      bad_field(param, "cannot be combined with '{}': one form of the output can be asked for", wish_->param);
    wish_ = {.spec = std::move(*spec), .param = param};
  }
  std::optional<OutputWish> take() { return std::move(wish_); }

 private:
  std::optional<OutputWish> wish_;
};

GrammarSpec schema_spec(const Json& schema, const std::string& param, bool is_strict) {
  if (!schema.is_object() && !schema.is_boolean())
    bad_field(param, "must be a JSON Schema, got {}", shown(schema));
  return {GrammarKind::json_schema, dump_json(schema), is_strict};
}

// vLLM takes a schema also as text.
GrammarSpec schema_or_text(const Json& schema, const std::string& param, bool is_strict) {
  if (!schema.is_string()) return schema_spec(schema, param, is_strict);
  return {GrammarKind::json_schema, schema.get<std::string>(), is_strict};
}

GrammarSpec text_spec(const Json& value, const std::string& param, GrammarKind kind) {
  if (!value.is_string()) bad_field(param, "must be a string, got {}", shown(value));
  if (value == "") bad_field(param, "is empty: no answer but the empty one would fit");
  return {kind, value.get<std::string>(), true};
}

// GBNF writes "::=", Lark ":".
GrammarSpec grammar_spec(const Json& value, const std::string& param) {
  GrammarSpec spec = text_spec(value, param, GrammarKind::lark);
  if (spec.text.find("::=") != std::string::npos) spec.kind = GrammarKind::gbnf;
  return spec;
}

GrammarSpec choice_spec(const Json& value, const std::string& param) {
  if (!value.is_array()) bad_field(param, "must be an array of strings, got {}", shown(value));
  if (value.empty()) bad_field(param, "is empty: there is nothing to choose from");
  for (const Json& one : value)
    if (!one.is_string()) bad_field(param, "must be an array of strings, got {}", shown(one));
  return {GrammarKind::choice, dump_json(value), true};
}

bool asks_for_nothing(const Json& value) { return value == false || value == "" || value == Json::array(); }

// {"type": ..., ...} of OpenAI (whose schema is one object deeper) and of the flat forms.
std::optional<GrammarSpec> format_spec(const JsonFields& format, const std::string& param, bool is_nested,
                                       bool is_strict_unsaid) {
  const std::string type = format.string("type").value_or("");
  if (type == "text") return std::nullopt;
  const Json* schema = format.find("schema");
  if (type == "json_object" && !schema) return GrammarSpec{GrammarKind::json_object, "", false};
  if (type == "json_object") return schema_spec(*schema, format.path_of("schema"), false);
  if (type != "json_schema")
    bad_field(param + ".type", "must be \"text\", \"json_object\" or \"json_schema\", got {}",
              shown(Json(type)));
  const Json* nested = is_nested ? format.object("json_schema") : nullptr;
  if (is_nested && !nested) bad_field(format.path_of("json_schema"), "is required");
  const JsonFields in = nested ? JsonFields(*nested, format.path_of("json_schema")) : format;
  const Json* found = in.find("schema");
  if (!found) bad_field(in.path_of("schema"), "is required");
  return schema_spec(*found, in.path_of("schema"), in.boolean("strict").value_or(is_strict_unsaid));
}

void add_format(const JsonFields& in, std::string_view name, Wish& wish, bool is_nested,
                bool is_strict_unsaid) {
  const Json* value = in.find(name);
  if (!value) return;
  const std::string param = in.path_of(name);
  wish.add(param, format_spec(JsonFields(*value, param), param, is_nested, is_strict_unsaid));
}

void add_structured_outputs(const JsonFields& in, Wish& wish) {
  const Json* object = in.object("structured_outputs");
  if (!object) return;
  const JsonFields inner(*object, in.path_of("structured_outputs"));
  for (const auto& [name, value] : object->items()) {
    const std::string param = inner.path_of(name);
    if (value.is_null()) continue;
    if (name == "json")
      wish.add(param, schema_or_text(value, param, true));
    else if (name == "regex")
      wish.add(param, text_spec(value, param, GrammarKind::regex));
    else if (name == "choice")
      wish.add(param, choice_spec(value, param));
    else if (name == "grammar")
      wish.add(param, grammar_spec(value, param));
    else if (name == "json_object" && value == true)
      wish.add(param, GrammarSpec{GrammarKind::json_object, "", false});
    else if (name == "disable_any_whitespace" || name == "disable_fallback" || asks_for_nothing(value))
      continue;  // that is how it is done
    else
      unserved_field(param, "this kind of structured output");
  }
}

using MakeSpec = GrammarSpec (*)(const Json&, const std::string&);

struct Field {
  std::string_view name;
  MakeSpec make;
};

constexpr std::array kOpenAiFields = {
    Field{"guided_json",
          [](const Json& value, const std::string& param) { return schema_or_text(value, param, true); }},
    Field{"guided_regex",
          [](const Json& value, const std::string& param) {
            return text_spec(value, param, GrammarKind::regex);
          }},
    Field{"guided_choice", choice_spec},
    Field{"guided_grammar", grammar_spec},
    Field{"grammar", [](const Json& value,
                        const std::string& param) { return text_spec(value, param, GrammarKind::gbnf); }},
    Field{"json_schema",
          [](const Json& value, const std::string& param) { return schema_spec(value, param, false); }},
};

void refuse_variants(const JsonFields& in) {
  for (const auto* name :
       {"grammar_lazy", "grammar_triggers", "guided_whitespace_pattern", "structural_tag"}) {
    const Json* value = in.find(name);
    if (value && !asks_for_nothing(*value)) unserved_field(in.path_of(name), "this kind of structured output");
  }
}

void add_openai(const JsonFields& in, Wish& wish) {
  add_format(in, "response_format", wish, /*is_nested=*/true, /*is_strict_unsaid=*/false);
  add_structured_outputs(in, wish);
  for (const Field& field : kOpenAiFields) {
    const Json* value = in.find(field.name);
    const bool is_default = field.name == "grammar" && value && *value == "";
    if (value && !is_default) wish.add(in.path_of(field.name), field.make(*value, in.path_of(field.name)));
  }
  refuse_variants(in);
}

void add_within(const JsonFields& in, std::string_view outer, Wish& wish, bool is_strict_unsaid) {
  if (const Json* object = in.object(outer))
    add_format(JsonFields(*object, in.path_of(outer)), "format", wish, /*is_nested=*/false, is_strict_unsaid);
}

void add_ollama(const JsonFields& in, Wish& wish) {
  const Json* value = in.find("format");
  if (!value || *value == "") return;
  const std::string param = in.path_of("format");
  if (*value == "json") return wish.add(param, GrammarSpec{GrammarKind::json_object, "", false});
  if (value->is_string()) bad_field(param, "must be \"json\" or a JSON Schema, got {}", shown(*value));
  wish.add(param, schema_spec(*value, param, false));
}

}  // namespace

std::optional<OutputWish> read_structured_output(const JsonFields& in, OutputFields fields) {
  Wish wish;
  switch (fields) {
    case OutputFields::openai:
      add_openai(in, wish);
      break;
    case OutputFields::responses:
      add_within(in, "text", wish, false);
      break;
    case OutputFields::anthropic:
      add_within(in, "output_config", wish, true);
      add_format(in, "output_format", wish, false, true);
      break;
    case OutputFields::ollama:
      add_ollama(in, wish);
      break;
  }
  return wish.take();
}

std::shared_ptr<const text::CompiledGrammar> compile_output(const ServedModel& model, const OutputWish& wish) {
  static_cast<void>(model.need_tokenizer());
  if (!model.grammars)
    fail(ErrorCode::unsupported, "serve", "{}: structured output needs the tokens that end a text", model.id);
  try {
    return model.grammars->compile(wish.spec);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::invalid_argument) throw;
    throw RequestError(ErrorCode::invalid_argument,
                       fmt::format("'{}' cannot be followed: {}", wish.param, plain_message(e.what())),
                       {.param = wish.param, .code = "invalid_value"});
  }
}

void add_notes(const text::CompiledGrammar& grammar, Headers& headers) {
  constexpr std::size_t kMost = 8, kLongest = 200;
  const auto& notes = grammar.notes();
  for (std::size_t i = 0; i < std::min(kMost, notes.size()); ++i) {
    std::string text = notes[i].substr(0, kLongest);
    // A header is one line of printable ASCII, and this one's text stands in quotes.
    for (char& c : text)
      if (c < ' ' || c > '~' || c == '"' || c == '\\') c = '\'';
    headers.add("warning", fmt::format("299 godwit \"not enforced: {}\"", text));
  }
}

std::shared_ptr<const decode::TokenConstraint> constraint_of(
    const ServedModel& model, std::shared_ptr<const text::CompiledGrammar> grammar,
    const ReasoningBefore& reasoning) {
  std::shared_ptr<const decode::TokenConstraint> output;
  if (grammar) output = model.grammars->constraint(std::move(grammar));
  if (reasoning.close.empty() || !model.grammars || (!output && reasoning.budget < 0)) return output;
  return model.grammars->behind_reasoning(reasoning.open, reasoning.close, reasoning.start, reasoning.budget,
                                          std::move(output));
}

}  // namespace godwit::serve
