// What both branches of a layer share: the norm and quantization in front, the residual sum behind. Private
// to ops.
#pragma once

#include <optional>

#include "ops/native_layers.h"
#include "ops/native_primitive.h"

namespace godwit::ops {

// before(x), in the form that products read.
kernels::Activations normalized_input(const NativeCall& call, const NormPlan& before);

// output = x + after(layer(inner)); inner is [tokens, layer.inputs()] f32.
void add_branch(const NativeCall& call, const float* inner, const PackedLinear& layer,
                const std::optional<NormPlan>& after);

}  // namespace godwit::ops
