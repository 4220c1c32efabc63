#include "nn/activations.h"

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/mx_ops.h"

namespace godwit::nn {

mx::array silu(const mx::array& x) { return x * mx::sigmoid(x); }

mx::array gelu(const mx::array& x) {
  const mx::array scaled = x / scalar_like(std::numbers::sqrt2, x);
  return x * (scalar_like(1.0, x) + mx::erf(scaled)) / scalar_like(2.0, x);
}

mx::array gelu_approx(const mx::array& x) {
  const mx::array cubed = mx::power(x, scalar_like(3.0, x));
  const mx::array inner =
      scalar_like(std::sqrt(2.0 / std::numbers::pi), x) * (x + scalar_like(0.044715, x) * cubed);
  return scalar_like(0.5, x) * x * (scalar_like(1.0, x) + mx::tanh(inner));
}

mx::array relu2(const mx::array& x) { return mx::square(mx::maximum(x, scalar_like(0.0, x))); }

mx::array xielu(const mx::array& x, const XieluScalars& s) {
  const auto softplus = [](const mx::array& alpha) { return mx::logaddexp(alpha, scalar_like(0.0, alpha)); };
  const mx::array above = softplus(s.positive) * mx::square(x) + s.beta * x;
  const mx::array slope = s.beta + softplus(s.negative);
  const mx::array below = (mx::expm1(mx::minimum(x, s.epsilon)) - x) * slope + s.beta * x;
  return mx::where(x > scalar_like(0.0, x), above, below);
}

std::string_view activation_name(Activation activation) {
  switch (activation) {
    case Activation::silu:
      return "silu";
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_approx:
      return "gelu_pytorch_tanh";
    case Activation::relu2:
      return "relu2";
    case Activation::xielu:
      return "xielu";
  }
  GODWIT_CHECK(false, "activation {}", static_cast<int>(activation));
}

std::optional<kernels::Activation> native_activation(Activation activation) {
  if (activation == Activation::silu) return kernels::Activation::silu;
  if (activation == Activation::gelu_approx) return kernels::Activation::gelu_tanh;
  return std::nullopt;
}

mx::array activate(Activation activation, const mx::array& x) {
  switch (activation) {
    case Activation::silu:
      return silu(x);
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_approx:
      return gelu_approx(x);
    case Activation::relu2:
      return relu2(x);
    case Activation::xielu:
      break;
  }
  GODWIT_CHECK(false, "activation {}", static_cast<int>(activation));
}

}  // namespace godwit::nn
