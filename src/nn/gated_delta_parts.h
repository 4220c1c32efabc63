// What both forms of the gated delta mixer read, and its form in native mode. Private to nn.
#pragma once

#include <optional>

#include "nn/gated_delta_mixer.h"

namespace godwit::nn {

using GatedDeltaOptions = GatedDeltaMixer::Options;

inline int key_channels(const GatedDeltaOptions& o) { return o.key_heads * o.key_dim; }
inline int value_channels(const GatedDeltaOptions& o) { return o.value_heads * o.value_dim; }
inline int values_per_key(const GatedDeltaOptions& o) { return o.value_heads / o.key_heads; }

// Which projections the file groups by key head.
struct GroupedProjections {
  bool values = false;  // in_proj_qkvz in place of in_proj_qkv and in_proj_z
  bool gates = false;   // in_proj_ba in place of in_proj_b and in_proj_a
};
// Error{corrupt_file} where they lie beside tiled value heads.
GroupedProjections grouped_projections(const checkpoint::WeightScope& scope, const GatedDeltaOptions& options);

// [channels, kernel] as the file orders it, whatever unit axis it has: transformers' [channels, 1, kernel],
// mlx-lm's [channels, kernel, 1] or none.
mx::array short_convolution(const checkpoint::WeightScope& scope, const GatedDeltaOptions& options);

// The primitive's parts but the norms around the branch, in the file's order of value heads. Nothing where a matrix is
// missing.
std::optional<ops::GatedDeltaPlan> gated_delta_plan(const checkpoint::WeightScope& scope,
                                                    const GatedDeltaOptions& options);

}  // namespace godwit::nn
