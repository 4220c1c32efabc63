// A native recurrence from arrays: what the fused node does with the rows of a step once it has their inputs.
#pragma once

#include <memory>
#include <vector>

#include "base/mx_ops.h"
#include "cache/state.h"
#include "ops/gated_delta.h"

namespace godwit::testing_support {

inline std::vector<float> as_floats(const mx::array& x) {
  mx::array wide = mx::contiguous(mx::astype(x, mx::float32));
  wide.eval();
  return {wide.data<float>(), wide.data<float>() + wide.size()};
}

inline std::shared_ptr<const ops::GatedDeltaWeights> delta_weights(const cache::RecurrentNeed& need,
                                                                   const cache::RecurrentInputs& inputs) {
  return std::make_shared<const ops::GatedDeltaWeights>(
      ops::GatedDeltaWeights{.sizes = {.key_heads = need.key_heads,
                                       .value_heads = need.value_heads,
                                       .key_dim = need.key_dim,
                                       .value_dim = need.value_dim,
                                       .kernel = need.kernel},
                             .convolution = as_floats(inputs.conv_weight),
                             .a_log = as_floats(inputs.a_log_is_rate ? mx::log(mx::negative(inputs.a_log)) : inputs.a_log),
                             .dt_bias = as_floats(inputs.dt_bias)});
}

// Moves the layer's rows, whose tokens are packed: [tokens, value_heads, value_dim] f32.
inline mx::array native_recur(ops::NativeRuntime& runtime, const cache::RecurrentNeed& need, ops::DeltaLayer& layer,
                              const cache::RecurrentInputs& inputs) {
  const std::vector<float> mixed = as_floats(inputs.mixed), decay = as_floats(inputs.decay),
                           update = as_floats(inputs.update);
  mx::array out = mx::zeros({inputs.mixed.shape(0), need.value_heads, need.value_dim});
  out.eval();
  ops::gated_delta_rows(runtime, delta_weights(need, inputs), layer,
                        {.mixed = mixed.data(),
                         .decay = decay.data(),
                         .update = update.data(),
                         .out = out.data<float>(),
                         .tokens = inputs.mixed.shape(0)});
  runtime.scratch.reset();
  return out;
}

}  // namespace godwit::testing_support
