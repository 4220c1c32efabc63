// Grammars of arguments that are no JSON: plain text between tags, Gemma's notation and Python's literals.
#pragma once

#include "text/turn/grammar_text.h"

namespace godwit::text {

// How one argument is written: open + key + key_end + value + close.
struct TaggedArguments {
  std::string open, key_end, close;
  bool has_cdata = false;
  bool names_strings = false;  // key_end says by string="true" whether the value is text as it stands
};
std::string tagged_arguments(GrammarText& grammar, const ToolSpec& tool, const TaggedArguments& tags);

struct LiteralNotation {
  bool is_python = false;     // (k=v, ...) around arguments, else {k:v,...}
  std::string quote = {};     // around strings; empty: Python's own
};
std::string literal_arguments(GrammarText& grammar, const ToolSpec& tool, const LiteralNotation& notation);

// The schema of an object of arguments, with nothing missing that a grammar needs. Parameters that are not named are
// allowed only where the schema says so itself.
Json argument_schema(const ToolSpec& tool);
// One property with the definitions that it may refer to.
Json property_schema(const Json& schema, const std::string& name);

}  // namespace godwit::text
