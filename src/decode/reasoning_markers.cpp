#include <algorithm>

#include "base/error.h"
#include "decode/reasoning_constraint.h"

namespace godwit::decode {
namespace {

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

void clear_bit(std::vector<std::uint32_t>& mask, int id) {
  mask[static_cast<std::size_t>(id) / 32] &= ~(std::uint32_t{1} << (id % 32));
}

// Knuth, Morris, Pratt: the border of each prefix.
std::vector<std::size_t> borders(std::string_view text) {
  std::vector<std::size_t> border(text.size() + 1, 0);
  for (std::size_t i = 1, length = 0; i < text.size(); ++i) {
    while (length > 0 && text[i] != text[length]) length = border[length];
    if (text[i] == text[length]) ++length;
    border[i + 1] = length;
  }
  return border;
}

}  // namespace

ReasoningMarkers::ReasoningMarkers(const text::Tokenizer& tokenizer, const std::set<int>& ends,
                                   int vocabulary, std::string_view open, std::string_view close)
    : tokenizer_(tokenizer), close_(close), border_(borders(close)) {
  if (close.empty()) fail(ErrorCode::invalid_argument, "reasoning", "the closing marker is empty");
  const text::EncodeOptions as_is{.add_special_tokens = false};
  if (!open.empty()) open_ids_ = tokenizer.encode(open, as_is);
  close_ids_ = tokenizer.encode(close, as_is);
  const int known = std::min(tokenizer.vocabulary_size(), vocabulary);
  free_.resize((static_cast<std::size_t>(vocabulary) + 31) / 32);
  carriers_.resize(close.size());
  for (int id = 0; id < known; ++id) {
    if (ends.contains(id) || !tokenizer.token_of(id)) continue;
    free_[static_cast<std::size_t>(id) / 32] |= std::uint32_t{1} << (id % 32);
    find_carriers(id);
  }
}

std::size_t ReasoningMarkers::next(std::size_t begun, char byte) const {
  if (begun == close_.size()) begun = border_[begun];
  while (begun > 0 && close_[begun] != byte) begun = border_[begun];
  return close_[begun] == byte ? begun + 1 : 0;
}

std::string ReasoningMarkers::text_of(int id) const {
  return tokenizer_.is_special(id) ? tokenizer_.token_of(id).value_or("") : tokenizer_.bytes_of(id);
}

// Behind each number of bytes of the marker: does the token complete it and go on?
void ReasoningMarkers::find_carriers(int id) {
  const std::string text = text_of(id);
  const char last = close_.back();
  const std::size_t end = text.find(last);
  if (end == std::string::npos || end + 1 == text.size()) return;
  for (std::size_t begun = 0; begun < close_.size(); ++begun) {
    std::size_t matched = begun, at = 0;
    while (at < text.size() && matched < close_.size()) matched = next(matched, text[at++]);
    if (matched == close_.size() && !is_blank(std::string_view(text).substr(at)))
      carriers_[begun].push_back(id);
  }
}

std::vector<std::uint32_t> ReasoningMarkers::free_mask(std::size_t begun) const {
  std::vector<std::uint32_t> mask = free_;
  for (const int id : carriers_[begun]) clear_bit(mask, id);
  return mask;
}

}  // namespace godwit::decode
