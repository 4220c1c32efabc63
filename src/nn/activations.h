// Activations in the exact op form of mlx-lm: constants in x's dtype, an integer power where it has one.
// Writing x*x*x for power(x, 3) changes a quarter of all bf16 results.
#pragma once

#include "base/mx.h"

namespace godwit::nn {

enum class Activation { silu, gelu, gelu_approx };

mx::array silu(const mx::array& x);         // x * sigmoid(x)
mx::array gelu(const mx::array& x);         // x * (1 + erf(x / sqrt 2)) / 2
mx::array gelu_approx(const mx::array& x);  // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))

mx::array activate(Activation activation, const mx::array& x);

}  // namespace godwit::nn
