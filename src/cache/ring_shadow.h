// In which column order mlx-lm's RotatingKVCache (keep = 0) would hold a sliding layer. Integers only.
//
// Our blocks lie in position order. The oracle's softmax and value sums run over its columns, and a sum in
// another order has other bits; so `reference` mode gathers the columns in the order that this shadow names.
// Two ways to append move the columns differently: one token is written in place at the ring's head, a longer
// block first brings the ring into temporal order and leaves a buffer that may be longer than the window.
//
// Beyond the oracle, truncate() also undoes tokens of a wrapped ring while the history that the next query
// needs is still there.
#pragma once

#include <optional>
#include <vector>

namespace godwit::cache {

class RingShadow {
 public:
  explicit RingShadow(int window) : window_(window) {}
  // As it stood: `length` columns, next written at `head`. Absent where no ring can stand so.
  static std::optional<RingShadow> restored(int window, int offset, int length, int head);

  int window() const { return window_; }
  int offset() const { return offset_; }  // tokens appended so far
  int length() const { return length_; }
  int head() const { return head_; }
  // Columns that attention sees after an append: the live ones.
  int columns() const { return length_ < offset_ ? length_ : offset_; }
  // True when column i holds position offset - columns + i.
  bool temporal() const { return head_ == columns(); }
  // The position in each column, valid right after an append.
  std::vector<int> positions() const;

  // tokens >= 1; exactly 1 takes the in-place path.
  void append(int tokens);
  // Forgets the newest `tokens`. The caller has checked that the history is there
  // (Row::minimum_reusable_length).
  void truncate(int tokens);

 private:
  void append_in_place();
  void append_block(int tokens);

  int window_;
  int offset_ = 0;
  int length_ = 0;  // columns of the oracle's buffer, unwritten ones included
  int head_ = 0;    // where it writes next
};

}  // namespace godwit::cache
