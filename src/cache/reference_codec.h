// Codecs of `reference` mode on MLX's own ops: how a span's keys and values become components, and attention
// over them as mlx-lm and mlx-optiq compute it. Graph functions without state; one row.
//
// A component is an array [1, heads, positions, fields]; a position's bytes depend on that position alone, so
// slicing, gathering and concatenating along the positions copies bytes.
//
//   dense   {x}
//   affine  {packed u32, scales, biases}, the scales in x's dtype
//   turbo   keys {codes, scales f16, zeros f16}, values {codes, scales f16} (reference_turbo.h)
#pragma once

#include <vector>

#include "base/mx.h"
#include "cache/attention_mask.h"
#include "cache/kv_policy.h"

namespace godwit::cache {

enum class PlaneRole { keys, values };

// x [1, heads, positions, dim], turned into `dense_type` first.
std::vector<mx::array> encode(const Codec& codec, PlaneRole role, const mx::array& x, mx::Dtype dense_type);

// What encode() kept of x, in `type`. Turbo values are turned back from the rotated domain.
mx::array decode(const Codec& codec, PlaneRole role, const std::vector<mx::array>& components,
                 mx::Dtype type);

struct AttendCall {
  const Codec& codec;
  bool from_config = false;  // the codec is a kv_config.json's: mlx-optiq's arithmetic, else mlx-lm's
  bool reads_only = false;   // nothing of this layer is stored in this step: shared KV, donors, drafters
  mx::array q;               // [1, heads, queries, key_dim]
  // Components over all columns, the span's own last (a single query: in any order).
  std::vector<mx::array> keys, values;
  Visibility visibility;
  const AttendSpec& spec;
  bool is_latent = false;  // dense only: keys are latents, values their rotary keys (dense_attention.h)
};

// -> [1, heads, queries, value_dim (of latents: their dim)] in q's dtype. A committed span is attended position by position, each
// query over the columns that a step of its own would see. Error{unsupported} by name where the oracle has no
// arithmetic: a score cap over affine components, sinks over affine ones outside a kv_config.json, both at
// once, and selected positions over affine components or in a window.
mx::array attend(const AttendCall& call);

}  // namespace godwit::cache
