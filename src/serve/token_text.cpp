#include "serve/token_text.h"

#include <algorithm>

namespace godwit::serve {

std::size_t count_code_points(std::string_view utf8) {
  return static_cast<std::size_t>(
      std::ranges::count_if(utf8, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

TokenPiece TokenText::add(int id) {
  if (!tokenizer_.token_of(id)) return {.bytes = {}, .begin = bytes_, .end = bytes_, .points = points_};
  const bool is_shown = std::ranges::find(shown_, id) != shown_.end();
  TokenPiece piece{.bytes = is_shown ? *tokenizer_.token_of(id) : tokenizer_.bytes_of(id)};
  const std::string text = is_shown ? detokenizer_.add_shown(id) : detokenizer_.add(id);
  // SentencePiece vocabularies drop the space in front of a text.
  if (!has_begun_ && piece.bytes.starts_with(' ') && piece.bytes.substr(1) == text) piece.bytes = text;
  has_begun_ |= !piece.bytes.empty();
  // Bytes that this token showed to be no character became text only now, in front of its own.
  const bool is_whole = !piece.bytes.empty() && (static_cast<unsigned char>(piece.bytes[0]) & 0xC0) != 0x80;
  const bool has_older = is_whole && text.size() > piece.bytes.size() && text.ends_with(piece.bytes);
  const std::string_view older =
      std::string_view(text).substr(0, has_older ? text.size() - piece.bytes.size() : 0);
  piece.begin = bytes_ + older.size();
  piece.points = points_ + count_code_points(older);
  bytes_ += text.size();
  points_ += count_code_points(text);
  piece.end = bytes_;
  return piece;
}

}  // namespace godwit::serve
