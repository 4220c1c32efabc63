// The gated delta branch of a layer, as one node:
//   x + after(out(norm(y) * silu(z))),  y the recurrence over the row's memory (gated_delta.h),
//   its q, k, v, gates and z from before(x)
// x is [tokens, hidden] f32. The gates of the recurrence are multiplied in f32 whatever the file's format: a memory that
// lives for thousands of tokens takes their powers. The bits of a row depend on its own tokens alone.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/mx.h"
#include "ops/delta_layer.h"
#include "ops/gated_delta.h"
#include "ops/native_layers.h"
#include "ops/packed_matrix.h"

namespace godwit::ops {

struct GatedDeltaPlan {
  std::shared_ptr<const GatedDeltaWeights> weights;
  NormPlan before;
  // q, k and v, each by heads. Where z is empty: for each key head its q and k, then v and z of its value heads.
  PackedLinear mixed;
  std::optional<PackedLinear> z;
  std::vector<float> decay, update;  // [value_heads, hidden]: to the logits a and b
  NormPlan norm;                     // [value_dim], of each value head
  PackedLinear out;
  std::optional<NormPlan> after;
};

// Moves the rows' memories in entry `layer` of StepLayers::delta.
mx::array gated_delta_branch(const mx::array& x, std::shared_ptr<const GatedDeltaPlan> plan, int layer);

}  // namespace godwit::ops
