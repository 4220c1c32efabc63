// What the attention of one layer sees during a step: where the keys and values of each row lie. The blocks
// belong to the state store and are written in place; they are not values of the graph.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention.h"

namespace godwit::ops {

// Tokens [position, position + tokens) of one row; `keys` and `values` have a block for every 64 positions up
// to the end, null where no query of the step can look. The pointers stay valid while the step is open.
struct KvRow {
  void* const* keys;
  void* const* values;
  std::int64_t position;
  std::int64_t tokens;
};

struct KvLayer {
  kernels::KvType type = kernels::KvType::f32;
  std::int64_t window = 0;  // positions a query sees, itself included; 0: all
  std::vector<KvRow> rows;  // the step's tokens, row after row
  bool open = true;         // false once the step is over
  bool stored = false;      // set by the primitive that wrote this step's tokens
};

}  // namespace godwit::ops
