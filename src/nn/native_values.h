// A small tensor as the f32 values that native primitives hold. Private to nn.
#pragma once

#include <vector>

#include "base/mx.h"

namespace godwit::nn {

// Exact for f32, f16 and bf16. Evaluates x.
std::vector<float> native_values(const mx::array& x);

}  // namespace godwit::nn
