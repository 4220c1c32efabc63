// Calls whose name stands before their arguments: f{...} in the wrappings of Mistral, Kimi, DeepSeek and Gemma, and
// Python's f(a=1).
#pragma once

#include "text/turn/call_reader.h"
#include "text/turn/literal_reader.h"

namespace godwit::text {

struct NamedCallSyntax {
  Marker section_open = {}, section_close = {};  // around all calls; empty: none
  Marker call_open = {}, call_close = {};        // around each call; empty: none
  std::string name_prefix = {};             // in front of the name, where it is written
  std::vector<Marker> name_ends = {};       // what separates the name from its arguments, beside their bracket
  Marker id_open = {};                      // between them: an id follows
  char bracket = '{';                  // opens the arguments
  LiteralSyntax literal = {};
  bool known_only = false;             // a name that is no tool's makes the text content
  bool has_numbered_names = false;     // functions.f:0 is the id of f (Kimi)
  bool has_typed_names = false;        // `function`, separator, name (DeepSeek V3)
};

CallReaderMaker named_calls(NamedCallSyntax syntax);

}  // namespace godwit::text
