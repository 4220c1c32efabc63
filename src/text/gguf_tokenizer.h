// The tokenizer.json that the tokenizer metadata of a GGUF stands for. Internal to this module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/string_list.h"
#include "text/gguf_vocabulary.h"

namespace godwit::text {

// The merges of a BPE model by rank. Merge i is texts[i]: cuts[i] bytes of the left token, `gap` bytes that count for
// nothing, the right token.
struct BpeMerges {
  StringList texts = {};
  std::vector<std::uint32_t> cuts = {};
  std::size_t gap = 0;
};

// A tokenizer.json. That of a BPE model comes without its two long lists: "vocab" is the tokens of the vocabulary, "merges"
// stands beside.
struct TokenizerParts {
  Json frame;
  std::optional<BpeMerges> merges;
};

// Throws Error{unsupported} for a model or pre-tokenizer that is not known and Error{corrupt_file} for lists
// that do not fit each other; both name `origin` and the value.
TokenizerParts tokenizer_parts_of(const GgufVocabulary& vocabulary, std::string_view origin);

}  // namespace godwit::text
