// What an answer must be, and the field that says so.
#pragma once

#include <string>

#include "text/grammar_spec.h"

namespace godwit::serve {

struct OutputWish {
  text::GrammarSpec spec = {};
  std::string param = {};  // the path of the field, for errors: "structured_outputs.regex"
};

}  // namespace godwit::serve
