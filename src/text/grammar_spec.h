// What an answer must be, as it was asked for: plain values, not yet compiled.
#pragma once

#include <compare>
#include <string>

namespace godwit::text {

enum class GrammarKind {
  json_object,  // any JSON object; no text
  json_schema,  // the text of a schema
  regex,        // of the whole text; no look-around, no back-references
  choice,       // a JSON array of the texts to choose from
  lark,         // a grammar in the Lark dialect of llguidance; <[id]> is a token, %json {...} a schema
  gbnf,         // a grammar in the notation of llama.cpp
};

// JSON comes compact: at most one space behind ':' and ',', properties in the order of the schema.
struct GrammarSpec {
  GrammarKind kind = GrammarKind::json_object;
  std::string text = {};
  bool is_strict = false;  // what of a schema cannot be enforced is refused, not left out and noted
  auto operator<=>(const GrammarSpec&) const = default;
};

}  // namespace godwit::text
