// Attention over dense K and V on MLX's own ops, op for op as mlx-lm's models call it (`reference` mode).
#pragma once

#include "base/mx.h"
#include "cache/attention_mask.h"

namespace godwit::cache {

// q [1, heads, queries, key_dim], k [1, kv_heads, columns, key_dim], v [1, kv_heads, columns, value_dim]
// -> [1, heads, queries, value_dim] in q's dtype.
mx::array dense_attention(const mx::array& q, const mx::array& k, const mx::array& v,
                          const Visibility& visibility, const AttendSpec& spec);

// The absorbed form of latent attention, as mlx-lm composes it for a single query of deepseek_v3: q [1, heads, queries,
// latent_dim + rotary_dim], latents [1, 1, columns, latent_dim], rotary [1, 1, columns, rotary_dim] -> [1, heads,
// queries, latent_dim]. The scores of the rotary part are the mask of attention over latents as keys and values.
// Error{unsupported} for a score cap or sinks.
mx::array latent_attention(const mx::array& q, const mx::array& latents, const mx::array& rotary,
                           const Visibility& visibility, const AttendSpec& spec);

}  // namespace godwit::cache
