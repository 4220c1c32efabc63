// The tokenizer.* keys of a GGUF header as plain values; the layer above hands them to text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/string_list.h"

namespace godwit::checkpoint {

struct GgufTokenizer {
  std::string model;  // tokenizer.ggml.model: gpt2, llama, t5, bert, ...
  std::string pre;    // tokenizer.ggml.pre, empty when absent
  StringList tokens;
  std::vector<float> scores;  // empty or one per token
  std::vector<int>
      token_types;  // empty or one per token; 1 normal 2 unknown 3 control 4 user defined 5 unused 6 byte
  StringList merges;
  std::optional<int> bos_id, eos_id, eot_id, eom_id, unknown_id, padding_id;
  std::optional<int> cls_id, separator_id, mask_id;  // of encoders
  std::optional<bool> add_bos, add_eos, add_space_prefix, remove_extra_whitespaces;
  std::optional<bool> lowercase, strip_accents;  // tokenizer.ggml.normalizer.*, of encoders
};

}  // namespace godwit::checkpoint
