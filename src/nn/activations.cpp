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

mx::array activate(Activation activation, const mx::array& x) {
  switch (activation) {
    case Activation::silu:
      return silu(x);
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_approx:
      return gelu_approx(x);
  }
  GODWIT_CHECK(false, "activation {}", static_cast<int>(activation));
}

}  // namespace godwit::nn
