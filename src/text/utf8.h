// UTF-8 that arrives in pieces. Whole characters leave at once; a partial one waits; bytes that can form no
// character become U+FFFD.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace godwit::text {

// How many U+FFFD stand for invalid bytes.
enum class Replacement {
  maximal_subpart,  // one for each maximal part of a character (Unicode 3.9, what Python and browsers do)
  every_byte,       // one for each byte (what SentencePiece does for its byte tokens)
};

class Utf8Stream {
 public:
  explicit Utf8Stream(Replacement replacement = Replacement::maximal_subpart) : replacement_(replacement) {}

  // Text that is certain after these bytes.
  std::string add(std::string_view bytes);
  // What still waits can no longer become a character.
  std::string finish();

 private:
  Replacement replacement_;
  std::string pending_;  // a proper prefix of one character
};

// The length of the character at the start of `bytes` when it is whole; 0 when it is a proper prefix of one;
// minus the size of its maximal subpart when it can be none.
int utf8_character(std::string_view bytes);

// One code point and its size in bytes from valid UTF-8.
struct CodePoint {
  char32_t value;
  std::size_t size;
};
CodePoint first_code_point(std::string_view valid);
void append_utf8(std::string& out, char32_t code_point);

}  // namespace godwit::text
