// Attention over affine-quantized keys and values without decoding them (`reference` mode).
#pragma once

#include <vector>

#include "base/mx.h"
#include "cache/attention_mask.h"
#include "cache/kv_policy.h"

namespace godwit::cache {

// Components {packed, scales, biases} as mx::quantize gives them, [1, kv_heads, columns, ...].
struct AffinePlanes {
  const std::vector<mx::array>& keys;
  const std::vector<mx::array>& values;
  const Codec& codec;
};

// mlx-lm's quantized_scaled_dot_product_attention, and with sinks mlx-optiq's addition to it: the sinks join
// the softmax in f32. q [1, heads, queries, key_dim] -> [1, heads, queries, value_dim].
mx::array affine_attention(const mx::array& q, const AffinePlanes& planes, const Visibility& visibility,
                           const AttendSpec& spec);

// mlx-optiq's fused_quantized_scaled_dot_product_attention: tiles of 512 columns with a running maximum, in
// the scores' own dtype. Not for array masks.
mx::array tiled_affine_attention(const mx::array& q, const AffinePlanes& planes, const Visibility& visibility,
                                 const AttendSpec& spec);

// Whether mlx-optiq tiles: 4 or 8 bits, queries in half precision, no array mask.
bool is_tiled(const mx::array& q, const Codec& codec, const Visibility& visibility);

}  // namespace godwit::cache
