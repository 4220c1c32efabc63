// Storing a step's keys and values and attending to them, over raw pointers: the part that the fused
// attention node and the state store's own attend() share. Working memory comes from runtime.scratch, which
// the caller resets.
#pragma once

#include "ops/kv_layer.h"
#include "ops/native_runtime.h"

namespace godwit::ops {

// The tokens of all rows of a step, one after another. `k` and `v` are null where nothing is stored.
struct KvSpan {
  const float* q;                             // [tokens, heads, keys.dim]
  const float* k;                             // [tokens, kv_heads, keys.dim]
  const float* v;                             // [tokens, kv_heads, values.dim]; not read with keys_as_values
  float* out;                                 // [tokens, heads, values.dim]
  std::int64_t q_stride, k_stride, v_stride;  // elements from token to token
  std::int64_t out_stride;
  std::int64_t heads;
  float scale = 1.0f;
  float soft_cap = 0.0f;         // 0: none
  const float* sinks = nullptr;  // [heads]
  // [tokens, selected_count]: the positions that each query sees of those it may see, in any order; null:
  // all. What is not there (-1) names none.
  const std::int32_t* selected = nullptr;
  std::int64_t selected_count = 0;
};

// Writes tokens [from, to) of the step into the blocks of their rows; different tokens may be written side by side.
void store_tokens(const KvLayer& layer, const KvSpan& span, std::int64_t from, std::int64_t to);
// Writes every row's tokens.
void store_span(NativeRuntime& runtime, const KvLayer& layer, const KvSpan& span);
// Attends every query to what it sees of its row, this step's own tokens included. The bits of a row depend
// on that row alone, not on the threads, nor on how many of its tokens are in the step.
void attend_span(NativeRuntime& runtime, const KvLayer& layer, const KvSpan& span);
// Attends to each row's stored context (inside the window of each query) and to the span itself, which is not
// stored: all queries of a row see all of its span. The span counts as dense f32 blocks behind the context;
// over turbo values its own are rotated as they are, unrounded. `ends` is not looked at.
void attend_block(NativeRuntime& runtime, const KvLayer& layer, const KvSpan& span);

}  // namespace godwit::ops
