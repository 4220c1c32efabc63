// A byte-level tokenizer with one token per byte (id = byte) and one special token (id 256, "<|end|>").
#pragma once

#include "base/json.h"
#include "text/tokenizer.h"

namespace godwit::testing {

// Byte-level vocabularies spell a byte as a printable character: itself where it is one, else one from U+0100
// on.
inline std::string byte_character(int byte) {
  const auto is_printable = [](int b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xFF && b != 0xAD);
  };
  int code = byte;
  if (!is_printable(byte)) {
    code = 0x100;
    for (int other = 0; other < byte; ++other) code += is_printable(other) ? 0 : 1;
  }
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

inline text::Tokenizer byte_tokenizer() {
  const Json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  Json vocabulary = Json::object();
  for (int byte = 0; byte < 256; ++byte) vocabulary[byte_character(byte)] = byte;
  const Json end = {{"id", 256},       {"content", "<|end|>"}, {"single_word", false}, {"lstrip", false},
                    {"rstrip", false}, {"normalized", false},  {"special", true}};
  const Json file = {{"version", "1.0"},
                     {"added_tokens", Json::array({end})},
                     {"normalizer", nullptr},
                     {"pre_tokenizer", byte_level},
                     {"post_processor", nullptr},
                     {"decoder", byte_level},
                     {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}};
  return text::Tokenizer::from_json(dump_json(file), "byte_tokenizer");
}

}  // namespace godwit::testing
