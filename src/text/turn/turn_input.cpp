#include "text/turn/turn_input.h"

#include <algorithm>

namespace godwit::text {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

void TurnInput::add_token(std::string_view text) {
  tokens_.push_back(text_.size());
  text_ += text;
}

// What is behind us and not kept leaves in large pieces, so that a long answer costs linear time.
void TurnInput::take(std::size_t size) {
  at_ += size;
  const std::size_t free = std::min(at_, kept_);
  if (free < 4096 || free * 2 < text_.size()) return;
  text_.erase(0, free);
  at_ -= free;
  if (kept_ != kNowhere) kept_ -= free;
  std::erase_if(tokens_, [free](std::size_t token) { return token < free; });
  for (std::size_t& token : tokens_) token -= free;
}

void TurnInput::back() {
  if (kept_ != kNowhere) at_ = kept_;
  release();
}

bool TurnInput::is_token(std::size_t offset) const {
  return std::ranges::binary_search(tokens_, at_ + offset);
}

std::size_t TurnInput::next_token() const {
  const auto next = std::ranges::lower_bound(tokens_, at_);
  return next == tokens_.end() ? rest().size() : *next - at_;
}

Match TurnInput::at(std::string_view text, std::size_t offset) const {
  if (text.empty()) return Match::no;
  const std::string_view here = rest().substr(std::min(offset, rest().size()));
  if (here.starts_with(text)) return Match::yes;
  return !has_ended_ && text.starts_with(here) ? Match::maybe : Match::no;
}

Match TurnInput::at(const Marker& marker, std::size_t offset) const {
  const Match match = at(marker.text, offset);
  if (match == Match::no || !marker.by_id_only || is_token(offset)) return match;
  // A token arrives whole: what stands here already is none.
  return offset < rest().size() ? Match::no : match;
}

std::optional<std::size_t> TurnInput::space(std::size_t offset) const {
  std::size_t end = offset;
  while (end < rest().size() && is_space(rest()[end])) ++end;
  if (end >= rest().size() && !has_ended_) return std::nullopt;
  return end - offset;
}

TurnInput::Found TurnInput::find(std::span<const Marker* const> markers, std::size_t from, std::size_t most) const {
  const std::string_view text = rest();
  for (std::size_t offset = from; offset < text.size() && offset <= most; ++offset) {
    const Marker* best = nullptr;
    bool is_open = false;
    for (const Marker* marker : markers) {
      if (marker->text.empty() || marker->text.front() != text[offset]) continue;
      const Match match = at(*marker, offset);
      is_open |= match == Match::maybe;
      if (match == Match::yes && (best == nullptr || marker->text.size() > best->text.size())) best = marker;
    }
    if (is_open) return {nullptr, offset};
    if (best != nullptr) return {best, offset};
  }
  return {nullptr, text.size() > most ? most + 1 : text.size()};
}

}  // namespace godwit::text
