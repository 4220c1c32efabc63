#include "cache/ring_shadow.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace godwit::cache {
namespace {
constexpr int kGrowth = 256;  // columns that the oracle adds at a time
}

std::optional<RingShadow> RingShadow::restored(int window, int offset, int length, int head) {
  const bool holds = window > 0 && offset >= 0 && length >= 0 && head >= 0 && head <= length && head <= offset;
  if (!holds) return std::nullopt;
  RingShadow ring(window);
  ring.offset_ = offset;
  ring.length_ = length;
  ring.head_ = head;
  return ring;
}

void RingShadow::append(int tokens) {
  GODWIT_CHECK(tokens >= 1, "{} tokens", tokens);
  if (tokens == 1)
    append_in_place();
  else
    append_block(tokens);
}

void RingShadow::append_in_place() {
  if (offset_ >= length_ && length_ < window_) {
    head_ = length_;
    length_ += std::min(kGrowth, window_ - length_);
  }
  if (length_ > window_) {  // a block left it oversize: the front is cut, the rest is in temporal order
    length_ = window_;
    head_ = window_;
  }
  if (head_ == window_) head_ = 0;
  ++head_;
  ++offset_;
}

void RingShadow::append_block(int tokens) {
  // Temporal order first: columns past the head of a ring that never wrapped are unwritten and fall away.
  const bool wrapped = head_ < offset_ && head_ != length_;
  const int held = wrapped ? length_ : head_;
  // Each query of the block still sees window - 1 predecessors.
  length_ = std::min(held, window_ - 1) + tokens;
  head_ = length_;
  offset_ += tokens;
}

void RingShadow::truncate(int tokens) {
  if (head_ == length_) length_ -= tokens;  // the newest columns lie at the end: they are cut off
  head_ -= tokens;
  if (head_ < 0) head_ += length_;
  offset_ -= tokens;
  GODWIT_CHECK(tokens >= 0 && head_ >= 0 && offset_ >= 0, "{} tokens cut from a ring", tokens);
}

std::vector<int> RingShadow::positions() const {
  std::vector<int> order(static_cast<std::size_t>(columns()));
  std::iota(order.begin(), order.end(), offset_ - columns());
  // Position order, rotated so that the newest position stands just before the head.
  std::ranges::rotate(order, order.end() - (head_ % std::max(columns(), 1)));
  return order;
}

}  // namespace godwit::cache
