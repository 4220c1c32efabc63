// A byte-level tokenizer whose token ids are easy to reason about: id b is the byte b, special tokens follow
// from 256.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/tokenizer.h"

namespace godwit::testing {

// The character that stands for a byte in byte-level vocabularies: printable Latin-1 stands for itself, the
// other bytes take U+0100 and up in order.
inline std::string byte_character(int byte) {
  const auto is_printable = [](int b) { return (b >= '!' && b <= '~') || (b >= 0xA1 && b != 0xAD); };
  int code = byte;
  if (!is_printable(byte)) {
    code = 0x100;
    for (int b = 0; b < byte; ++b) code += is_printable(b) ? 0 : 1;
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

inline Json byte_tokenizer_json(const std::vector<std::string>& special_tokens) {
  Json vocabulary = Json::object(), added = Json::array();
  for (int byte = 0; byte < 256; ++byte) vocabulary[byte_character(byte)] = byte;
  for (std::size_t i = 0; i < special_tokens.size(); ++i) {
    added.push_back({{"id", 256 + i},
                     {"content", special_tokens[i]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const Json byte_level{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", nullptr},
          {"decoder", byte_level},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}};
}

inline text::Tokenizer byte_tokenizer(const std::vector<std::string>& special_tokens = {"<|end|>"}) {
  return text::Tokenizer::from_json(dump_json(byte_tokenizer_json(special_tokens)), "byte_tokenizer");
}

}  // namespace godwit::testing
