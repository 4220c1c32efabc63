// Rows whose values are tags: keys are zeros, so every visible position has the same weight, and element p of
// the answer is not zero exactly where position p is seen.
#pragma once

#include <map>
#include <vector>

#include "ops/native_runtime.h"
#include "state/world.h"

namespace godwit::cache::state_test {

constexpr int kMostTags = 512;

class TaggedRows {
 public:
  TaggedRows(NumericMode mode, int window, int rows);

  int length(int r) const { return lengths_[static_cast<std::size_t>(r)]; }
  Row& row(int r) { return rows_[static_cast<std::size_t>(r)]; }
  // Appends so many tokens to each row (0: none); throws Broken unless each query sees exactly (q - W, q].
  void append(const std::vector<int>& tokens);
  // The newest positions of a read: exactly [length - W, length).
  void read(int r);
  void begin();
  void rollback(const std::vector<int>& keep);  // by row, of the tokens since begin()

 private:
  void check(const mx::array& out, int at, int row, int query, int begin, int end) const;

  ops::NativeRuntime runtime_;
  NumericMode mode_;
  int window_;
  StateStore store_;
  std::vector<Row> rows_;
  std::vector<int> lengths_, before_;
  std::vector<Round> rounds_;
};

}  // namespace godwit::cache::state_test
