// The prompt of llama.cpp's /infill: a gap in a file, behind other files of its repository.
#pragma once

#include <string>
#include <vector>

#include "serve/fill_in_middle.h"

namespace godwit::serve {

struct InfillFile {
  std::string name;
  std::string text;
};

struct InfillText {
  std::string prefix = {};
  std::string suffix = {};
  std::string middle = {};              // what the filling begins with
  std::vector<InfillFile> others = {};  // further files, which the model reads first
};

// Each of the other files behind its name, after the tokens that the vocabulary has for repositories and files, and else
// as plain text; then the gap. Text that spells a control token is text.
std::vector<int> infill_prompt(const InfillText& text, const FillInMiddle& gap, const text::Tokenizer& tokenizer);

// Tokens that end what is filled in, as an end token does: those that would begin another file.
std::vector<int> infill_ends(const text::Tokenizer& tokenizer);

}  // namespace godwit::serve
