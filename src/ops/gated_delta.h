// A gated delta layer over one row's tokens, over raw pointers and the runtime's threads: what the state
// store and a fused primitive share. f32 throughout.
#pragma once

#include <cstdint>

#include "ops/native_runtime.h"

namespace godwit::ops {

struct GatedDeltaSizes {
  std::int64_t key_heads, value_heads;  // key_heads divides value_heads
  std::int64_t key_dim, value_dim;
  std::int64_t kernel;  // of the convolution, 1 ... kernels::kMaxConvolution

  std::int64_t key_channels() const { return key_heads * key_dim; }
  std::int64_t value_channels() const { return value_heads * value_dim; }
  std::int64_t channels() const { return 2 * key_channels() + value_channels(); }
};

struct GatedDeltaSpan {
  const float*
      mixed;  // [tokens, channels]: q, k and v heads before the convolution, tokens mixed_stride apart
  const float* decay;        // [tokens, value_heads], the logits a
  const float* update;       // [tokens, value_heads], the logits b
  const float* conv_weight;  // [channels, kernel]
  const float* a_log;        // [value_heads]
  const float* dt_bias;      // [value_heads]
  const float* state;        // [value_heads, value_dim, key_dim]; null: zeros
  const float* tail;         // [kernel - 1, channels]; null: zeros
  float* next_state;         // as state; may be `state` itself
  float* next_tail;          // as tail, but never `tail` itself
  float* out;  // [tokens, value_heads, value_dim], tokens out_stride apart; null: only the memory
  std::int64_t tokens;
  std::int64_t mixed_stride, out_stride;  // in elements
};

// q and k become unit vectors (1e-6 under the root), q then takes the factor 1 / sqrt(key_dim). A token's
// bits depend on the tokens before it alone: not on the spans they came in, nor on threads or level. Takes
// from the scratch.
void gated_delta_span(NativeRuntime& runtime, const GatedDeltaSizes& sizes, const GatedDeltaSpan& span);

}  // namespace godwit::ops
