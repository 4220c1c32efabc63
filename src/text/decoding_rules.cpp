#include "text/decoding_rules.h"

#include <array>
#include <cstdint>

#include "text/utf8.h"

namespace godwit::text {
namespace {

constexpr std::string_view kSpaceMarker = "\xE2\x96\x81";  // U+2581

// GPT-2 keeps printable Latin-1 as it is and moves the other bytes, in order, to U+0100 and up.
constexpr bool keeps_its_place(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

// For each character of the alphabet its byte, -1 between them.
constexpr auto bytes_by_character() {
  std::array<std::int16_t, 0x144> bytes{};
  bytes.fill(-1);
  std::size_t next = 0x100;
  for (unsigned byte = 0; byte < 0x100; ++byte)
    bytes[keeps_its_place(byte) ? byte : next++] = static_cast<std::int16_t>(byte);
  return bytes;
}

// Calls `visit` with every object of a decoder or pre-tokenizer, sequences opened.
template <typename Visit>
void for_each_part(const Json& part, Visit&& visit) {
  if (part.is_null()) return;
  for (const char* key : {"decoders", "pretokenizers"}) {
    if (!part.contains(key)) continue;
    for (const Json& child : part[key]) for_each_part(child, visit);
    return;
  }
  visit(part.value("type", ""), part);
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with(from)) {
      out += to;
      at += from.size();
    } else {
      out += text[at++];
    }
  }
  return out;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// The value of <0xNN>, or -1.
int byte_token_value(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const int high = hex_digit(token[3]), low = hex_digit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

// Every character of the alphabet as its byte; a token with any other character (an added one) is plain text.
std::string byte_level_bytes(std::string_view token) {
  std::string out;
  for (std::string_view rest = token; !rest.empty();) {
    const CodePoint point = first_code_point(rest);
    const auto byte = byte_of_alphabet(point.value);
    if (!byte) return std::string(token);
    out.push_back(static_cast<char>(*byte));
    rest.remove_prefix(point.size);
  }
  return out;
}

}  // namespace

std::optional<unsigned char> byte_of_alphabet(char32_t character) {
  static constexpr auto kBytes = bytes_by_character();
  if (character >= kBytes.size() || kBytes[character] < 0) return std::nullopt;
  return static_cast<unsigned char>(kBytes[character]);
}

std::string alphabet_of_byte(unsigned char byte) {
  char32_t character = byte;
  if (!keeps_its_place(byte)) {
    character = 0x100;
    for (unsigned before = 0; before < byte; ++before) character += !keeps_its_place(before);
  }
  std::string out;
  append_utf8(out, character);
  return out;
}

DecodingRules DecodingRules::from_description(const Json& description) {
  DecodingRules rules;
  bool byte_level_splitter = false;
  for_each_part(description.at("pre_tokenizer"), [&](const std::string& type, const Json&) {
    byte_level_splitter = byte_level_splitter || type == "ByteLevel";
  });
  for_each_part(description.at("decoder"), [&](const std::string& type, const Json& part) {
    if (type == "ByteLevel") rules.byte_level = true;
    if (type == "ByteFallback") rules.byte_fallback = true;
    if (type == "WordPiece") rules.word_pieces = true;
    if (type == "BPEDecoder") rules.word_end = part.value("suffix", "</w>");
    if (type == "Replace" && part.value("content", "") == " ") rules.space_marker = true;
    if (type == "Strip" && part.value("content", "") == " ")
      rules.strip_leading_spaces = part.value("start", 0);
    if (type == "Metaspace") {
      rules.space_marker = true;
      if (part.value("prepend_scheme", "always") != "never") rules.strip_leading_spaces = 1;
    }
  });
  // A byte-level splitter means byte-level tokens, whatever the decoder says: nobody wants to read its
  // letters.
  if (byte_level_splitter) rules = DecodingRules{.byte_level = true};
  return rules;
}

bool DecodingRules::is_byte_token(std::string_view token) const {
  return byte_fallback && byte_token_value(token) >= 0;
}

std::string DecodingRules::bytes_of(std::string_view token) const {
  if (byte_level) return byte_level_bytes(token);
  if (is_byte_token(token)) return std::string(1, static_cast<char>(byte_token_value(token)));
  if (word_pieces) return token.starts_with("##") ? std::string(token.substr(2)) : " " + std::string(token);
  if (!word_end.empty()) return replaced(token, word_end, " ");
  return space_marker ? replaced(token, kSpaceMarker, " ") : std::string(token);
}

}  // namespace godwit::text
