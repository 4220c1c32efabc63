// The K and V of one layer of one row in the dense codec: two buffers [1, kv_heads, capacity, dim] in
// position order.
//
// Appending is MLX's slice_update, which writes in place as long as nobody else holds the buffer; so the row
// hands its buffer to the graph and keeps only the result. What lies past the row's length is dead:
// truncating moves no byte, and an append that never runs is undone by abandon().
#pragma once

#include <optional>
#include <vector>

#include "base/mx.h"

namespace godwit::cache {

class DensePlanes {
 public:
  // Writes k [1, kv_heads, tokens, key_dim] and v at positions [position, position + tokens). Positions
  // before `first_kept` are never asked for again: growing drops them. All or nothing.
  void append(int position, int first_kept, const mx::array& k, const mx::array& v);
  // Takes back an append whose Step was not published. Buffers that were evaluated stay: they hold all older
  // columns.
  void abandon();

  // Columns of positions [begin, end).
  mx::array keys(int begin, int end) const;
  mx::array values(int begin, int end) const;
  // Columns in a stated order.
  mx::array keys(const std::vector<int>& positions) const;
  mx::array values(const std::vector<int>& positions) const;

  bool empty() const { return !keys_; }
  // Both buffers, for evaluation; empty() must be false.
  std::vector<mx::array> arrays() const { return {*keys_, *values_}; }
  bool evaluated() const;
  std::size_t bytes() const;

 private:
  mx::array columns(const mx::array& buffer, int begin, int end) const;
  mx::array columns(const mx::array& buffer, const std::vector<int>& positions) const;

  std::optional<mx::array> keys_;
  std::optional<mx::array> values_;
  int origin_ = 0;             // position of column 0
  bool replaced_all_ = false;  // the last append met no live column: undoing it leaves nothing
};

}  // namespace godwit::cache
