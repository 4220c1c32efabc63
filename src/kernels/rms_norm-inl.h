#pragma once

#include "kernels/level.h"
#include "kernels/rms_norm.h"

namespace godwit::kernels {
namespace {

template <class V>
V inverse_rms(const float* x, std::int64_t n, float epsilon) {
  V squares = V::zero();
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const V part = V::load(x + i);
    squares = V::fma(part, part, squares);
  }
  if (i < n) {
    const V part = V::load_first(x + i, n - i);
    squares = V::fma(part, part, squares);
  }
  const float mean = squares.sum() / static_cast<float>(n);
  return V::set1(1.0f) / V::sqrt(V::set1(mean + epsilon));
}

template <class V>
Level rms_norm_body(const RmsNormArgs& a) {
  for (std::int64_t row = 0; row < a.rows; row++) {
    const float* x = a.x + row * a.x_stride;
    float* y = a.y + row * a.y_stride;
    const V scale = inverse_rms<V>(x, a.n, a.epsilon);
    std::int64_t i = 0;
    for (; i + 16 <= a.n; i += 16) (V::load(x + i) * scale * V::load(a.weight + i)).store(y + i);
    const std::int64_t rest = a.n - i;
    if (rest > 0)
      (V::load_first(x + i, rest) * scale * V::load_first(a.weight + i, rest)).store_first(y + i, rest);
  }
  return V::kLevel;
}

}  // namespace
}  // namespace godwit::kernels
