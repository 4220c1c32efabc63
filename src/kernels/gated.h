// y = activation(gate) * up, element by element in f32.
#pragma once

#include <cstdint>

namespace godwit::kernels {

enum class Activation {
  silu,       // g / (1 + exp(-g))
  gelu_tanh,  // g * (1 + tanh(sqrt(2/pi) (g + 0.044715 g^3))) / 2, computed as g / (1 + exp(-2 sqrt(2/pi)
              // (...)))
  sigmoid,    // 1 / (1 + exp(-g)): gates that scale and do not add to what they let through
};

struct GatedArgs {
  Activation activation;
  const float* gate;  // [rows, n], rows gate_stride apart
  const float* up;    // [rows, n], rows up_stride apart
  float* y;           // [rows, n], rows y_stride apart; may be gate or up
  std::int64_t rows, n;
  std::int64_t gate_stride, up_stride, y_stride;  // in elements
};

}  // namespace godwit::kernels
