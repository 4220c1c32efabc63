// Attention over dense K and V on MLX's own ops, op for op as mlx-lm's models call it (`reference` mode).
#pragma once

#include <optional>

#include "base/mx.h"
#include "cache/state.h"

namespace godwit::cache {

// The queries stand behind `context` of the columns they are given; columns are in temporal order wherever a
// mask is needed. `window` 0: full.
struct Visibility {
  SpanKind kind = SpanKind::causal;
  int queries = 0;
  int context = 0;  // columns before the first query's own
  int window = 0;
};

// q [1, heads, queries, key_dim], k [1, kv_heads, columns, key_dim], v [1, kv_heads, columns, value_dim]
// -> [1, heads, queries, value_dim] in q's dtype.
mx::array dense_attention(const mx::array& q, const mx::array& k, const mx::array& v,
                          const Visibility& visibility, const AttendSpec& spec);

// Bool [queries, context + queries]; true where query i sees column j.
mx::array visibility_mask(const Visibility& visibility);

}  // namespace godwit::cache
