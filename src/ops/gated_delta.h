// A gated delta layer over raw pointers and the runtime's threads: what the fused node and the replay of a row
// that goes back share. f32 throughout.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ops/delta_layer.h"
#include "ops/native_runtime.h"

namespace godwit::ops {

struct GatedDeltaSizes {
  std::int64_t key_heads, value_heads;  // key_heads divides value_heads
  std::int64_t key_dim, value_dim;
  std::int64_t kernel;  // of the convolution, 1 ... kernels::kMaxConvolution
  // Whose key head a value head reads: of its number / (value_heads / key_heads), or of its number % key_heads.
  bool has_tiled_values = false;

  std::int64_t key_channels() const { return key_heads * key_dim; }
  std::int64_t value_channels() const { return value_heads * value_dim; }
  std::int64_t channels() const { return 2 * key_channels() + value_channels(); }
};

// The parameters of the recurrence; made at load, shared by all steps.
struct GatedDeltaWeights {
  GatedDeltaSizes sizes;
  std::vector<float> convolution;  // [channels, kernel]
  std::vector<float> a_log;        // [value_heads]
  std::vector<float> dt_bias;      // [value_heads]
};

struct GatedDeltaSpan {
  const float* mixed;   // [tokens, channels]: q, k and v heads before the convolution
  const float* decay;   // [tokens, value_heads], the logits a
  const float* update;  // [tokens, value_heads], the logits b
  float* out;           // [tokens, value_heads, value_dim]; null: only the memory
  std::int64_t tokens;
};

// Moves one row's memory over its tokens. q and k become unit vectors (1e-6 under the root), q then takes the
// factor 1 / sqrt(key_dim). A token's bits depend on the tokens before it alone: not on the spans they came in,
// nor on threads or level. Takes from the scratch.
void gated_delta_span(NativeRuntime& runtime, const GatedDeltaWeights& weights, const DeltaMemory& memory,
                      const GatedDeltaSpan& span);

// The rows of a step, whose tokens lie one row after another; keeps the inputs of those that may go back.
// Error{internal} for a layer that is over, has moved already, or was planned for another number of tokens or
// other sizes.
void gated_delta_rows(NativeRuntime& runtime, std::shared_ptr<const GatedDeltaWeights> weights,
                      DeltaLayer& layer, const GatedDeltaSpan& span);

}  // namespace godwit::ops
