// What the attention of one layer sees during a step: where the keys and values of each row lie. The blocks
// belong to the state store and are written in place; they are not values of the graph.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention.h"
#include "kernels/kv_plane.h"

namespace godwit::ops {

// Tokens [position, position + tokens) of one row. `blocks` has an entry for every 64 positions up to the
// end, null where no query of the step can look. A block holds all layers that share a table; the planes say
// where this layer's keys and values lie in it. The pointers stay valid while the step is open.
struct KvRow {
  void* const* blocks;
  kernels::KvPlane keys, values;  // `keys_as_values`: equal offsets, values.dim <= keys.dim
  std::int64_t position;
  std::int64_t tokens;
  // Position of the first token that a query of this row does not see, counted by query; empty: each query
  // sees up to itself. Only for spans that attend forward (bidirectional, image spans, reads).
  std::vector<std::int64_t> ends;
  // The same of the first position that it sees although its window begins later; empty where `ends` is.
  std::vector<std::int64_t> begins = {};
};

struct KvLayer {
  std::int64_t window = 0;  // positions a query sees, itself included; 0: all
  bool reads_only = false;  // a step that stores nothing: its queries see what is stored, up to `position`
  std::vector<KvRow> rows;  // the step's tokens, row after row; none in a layer of another content
  bool stored = false;      // set by the primitive that wrote this step's tokens
};

}  // namespace godwit::ops
