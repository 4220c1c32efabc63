// Who goes on from whose tokens: rows with a common beginning compute it once. A row that begins while another computes
// what both need waits for it; one that begins later forks a row that is there, or finds it in the prompt cache.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "decode/active_row.h"

namespace godwit::decode {

using Rows = std::vector<std::unique_ptr<ActiveRow>>;

class PrefixSharing {
 public:
  explicit PrefixSharing(NumericMode mode) : is_native_(mode == NumericMode::native) {}

  // Of fewer tokens nobody waits for another.
  static constexpr int kWorthWaiting = 32;

  // Begins a row that has none of its tokens, among `rows`, itself included: gives it a leader, or what is there.
  void begin(ActiveRow& row, const Rows& rows) const;
  // Behind a step: rows whose leader has what they wait for go on from it.
  void hand_over(const Rows& rows) const;
  // Before `row` leaves or gives its memory back: its followers take what it has and begin again.
  void leave(const ActiveRow& row, const Rows& rows) const;
  // Where the next span of `row` must end because others wait for that position.
  std::optional<int> stop_of(const ActiveRow& row, const Rows& rows) const;

 private:
  // Tokens at the beginning that `row` may take from `other`, once that one has them.
  int common(const ActiveRow& row, const ActiveRow& other) const;
  // How many of the first `wanted` tokens can be taken from `other` now.
  int available(const ActiveRow& other, int wanted) const;
  ActiveRow* leader_of(const ActiveRow& row, const Rows& rows) const;
  void find(ActiveRow& row, const Rows& rows) const;

  bool is_native_;
};

}  // namespace godwit::decode
