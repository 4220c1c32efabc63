// What stands in the first branch of a decoder layer: attention, or a recurrence over the layer's state.
#pragma once

#include <variant>

#include "base/mx.h"
#include "cache/state.h"
#include "ops/native_branch.h"
#include "ops/native_gated_delta.h"

namespace godwit::nn {

// One fused primitive each.
using MixerPlan = std::variant<ops::AttentionPlan, ops::GatedDeltaPlan>;

class Mixer {
 public:
  virtual ~Mixer() = default;
  // x [tokens, hidden] of all rows, packed -> [tokens, hidden]. Moves `state` over the step's span.
  virtual mx::array operator()(const mx::array& x, const cache::Step& step, cache::LayerState& state) const = 0;
  // Whether its matrices are packed for our kernels: `native` mode.
  virtual bool is_native() const = 0;
  // What a fused primitive takes, but the norms around the branch. Error{unsupported} naming what our kernels
  // cannot do.
  virtual MixerPlan plan() const = 0;
};

}  // namespace godwit::nn
