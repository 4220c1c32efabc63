// How the tokens of one vocabulary become bytes again, read once from the tokenizer's own decoder and
// pre-tokenizer.
//
// Two kinds cover the models we serve. Byte level (GPT-2's alphabet): every token is a run of bytes, the text
// is their plain sum. SentencePiece style: U+2581 stands for a space, <0xNN> for one byte, and the first
// space of a whole text may be an artefact that is taken off once.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace godwit::text {

struct DecodingRules {
  bool byte_level = false;
  bool byte_fallback = false;    // <0xNN> tokens stand for bytes
  bool space_marker = false;     // U+2581 stands for a space
  bool word_pieces = false;      // tokens are words, "##x" continues one
  std::string word_end = {};     // BPE with an end-of-word suffix ("</w>"): the suffix stands for a space
  int strip_leading_spaces = 0;  // taken off the start of a whole text

  // `description`: {"decoder": ..., "pre_tokenizer": ...} in the form of tokenizer.json.
  static DecodingRules from_description(const Json& description);

  // The bytes that a token adds to a text.
  std::string bytes_of(std::string_view token) const;
  // True for a token that stands for one raw byte (<0xNN>).
  bool is_byte_token(std::string_view token) const;
};

// The byte that a character of GPT-2's alphabet stands for; nullopt for every other character.
std::optional<unsigned char> byte_of_alphabet(char32_t character);
// The whole alphabet, by byte, in UTF-8.
std::string alphabet_of_byte(unsigned char byte);

}  // namespace godwit::text
