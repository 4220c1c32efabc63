// Native nodes in a graph that MLX evaluates and differentiates: tests, training, graphs with other operations beside
// them. The forward has the bits of the executor's; gradients are those of the composed forms.
#pragma once

#include <map>
#include <string>

#include "base/mx.h"
#include "ops/native_runtime.h"
#include "ops/step_layers.h"

namespace godwit::ops {

// Binds the native nodes that `output` hangs on. Runtime and layers must outlive the evaluation, which runs the nodes
// on the thread that asks for it; where gradients are taken, bind inside of the function that is differentiated.
void bind_runtime(const mx::array& output, NativeRuntime& runtime, const StepLayers& layers = {});

// Of the dense parameters of the native node that made `y` (norms, biases, routers, matrices of 16-bit floats), by the
// name that its plan has for them: what `cotangent` [as y] leaves of each, f32. Quantized matrices have none.
// Error{invalid_argument} where y is no native node, Error{unsupported} as in NativePrimitive::composed().
std::map<std::string, mx::array> parameter_gradients(const mx::array& y, const mx::array& cotangent);

}  // namespace godwit::ops
