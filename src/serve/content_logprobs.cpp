#include "serve/content_logprobs.h"

#include <iterator>

#include "serve/token_text.h"

namespace godwit::serve {

void ContentLogprobs::forget() {
  points_ += count_code_points(held_);
  held_.clear();
  entries_.clear();
}

// The pieces are stretches of the text in order; what lies between two of them is markup, and white space
// around it.
std::vector<LogprobEntry> ContentLogprobs::leave(std::string_view piece) {
  std::vector<LogprobEntry> out;
  const std::size_t at = held_.find(piece);
  if (at == std::string::npos) return out;
  const std::size_t begin = points_ + count_code_points(std::string_view(held_).substr(0, at));
  const std::size_t end = begin + count_code_points(piece);
  while (!entries_.empty() && entries_.front().text_offset < end) {
    if (entries_.front().text_offset >= begin) out.push_back(std::move(entries_.front()));
    entries_.pop_front();
  }
  held_.erase(0, at + piece.size());
  points_ = end;
  return out;
}

std::vector<LogprobEntry> ContentLogprobs::take(std::string_view text, std::vector<LogprobEntry> entries,
                                                std::span<const text::TurnPiece> pieces,
                                                bool is_in_reasoning) {
  using Kind = text::TurnPiece::Kind;
  held_ += text;
  std::move(entries.begin(), entries.end(), std::back_inserter(entries_));
  std::vector<LogprobEntry> out;
  for (const text::TurnPiece& piece : pieces) {
    if (piece.kind == Kind::call || piece.kind == Kind::arguments) {
      forget();
      continue;
    }
    std::vector<LogprobEntry> left = leave(piece.text);
    if (piece.kind == Kind::content) std::move(left.begin(), left.end(), std::back_inserter(out));
  }
  if (is_in_reasoning) forget();
  return out;
}

}  // namespace godwit::serve
