// y = x / sqrt(mean(x^2) + epsilon) * weight, row by row, in f32.
#pragma once

#include <cstdint>

namespace godwit::kernels {

struct RmsNormArgs {
  const float* x;       // [rows, n], rows x_stride apart
  const float* weight;  // [n]
  float* y;             // [rows, n], rows y_stride apart; may be x itself
  std::int64_t rows, n;
  std::int64_t x_stride, y_stride;  // in elements
  float epsilon;
};

}  // namespace godwit::kernels
