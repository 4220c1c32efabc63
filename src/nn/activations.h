// Activations in the exact op form of mlx-lm: constants in x's dtype, an integer power where it has one.
// Writing x*x*x for power(x, 3) changes a quarter of all bf16 results.
#pragma once

#include <optional>
#include <string_view>

#include "base/mx.h"
#include "kernels/gated.h"

namespace godwit::nn {

enum class Activation { silu, gelu, gelu_approx, relu2, xielu };

mx::array silu(const mx::array& x);         // x * sigmoid(x)
mx::array gelu(const mx::array& x);         // x * (1 + erf(x / sqrt 2)) / 2
mx::array gelu_approx(const mx::array& x);  // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
mx::array relu2(const mx::array& x);        // max(x, 0)^2

// The learned scalars of xIELU: the alphas above and below 0 stand in front of their softplus.
struct XieluScalars {
  mx::array positive, negative, beta, epsilon;
};
// p x^2 + beta x above 0, else (exp(min(x, epsilon)) - 1 - x) (beta + n) + beta x, where p and n are the softplus
// of the alphas.
mx::array xielu(const mx::array& x, const XieluScalars& scalars);

// All but xielu, which needs its scalars.
mx::array activate(Activation activation, const mx::array& x);

// The name a config.json gives it under hidden_act: "silu", "gelu", "gelu_pytorch_tanh", "relu2",
// "xielu".
std::string_view activation_name(Activation activation);

// The gate of our kernels that it is, if any.
std::optional<kernels::Activation> native_activation(Activation activation);

}  // namespace godwit::nn
