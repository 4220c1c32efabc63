// How a byte-level BPE vocabulary from a GGUF cuts text into words, by its tokenizer.ggml.pre.
// Source of the rules: the tokenizer.json files of the models themselves, listed by name in docs and tests.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::text {

struct PreTokenizer {
  std::vector<std::string>
      patterns;  // applied in turn, each cutting the pieces of the one before; matches stand alone
  bool ignore_merges = false;  // a piece that is a token needs no merging
  bool add_bos = false;        // unless the file says otherwise
  bool nfc = false;            // text is composed first
  bool never_bos = false;      // the model has no BOS whatever the file says
};

// nullopt for a name that is not known: guessing a splitter would give fluent text of poor quality.
std::optional<PreTokenizer> find_pre_tokenizer(std::string_view name);

}  // namespace godwit::text
