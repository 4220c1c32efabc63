// What an answer must be, as it was asked for: plain values, not yet compiled.
#pragma once

#include <string>

namespace godwit::text {

enum class GrammarKind { json_object, json_schema, regex, choice, lark, gbnf };

struct GrammarSpec {
  GrammarKind kind = GrammarKind::json_object;
  std::string text = {};   // the schema (JSON), regex, list of texts (JSON array) or grammar; empty for json_object
  bool is_strict = false;  // what cannot be enforced is refused, not relaxed
};

}  // namespace godwit::text
