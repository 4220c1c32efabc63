#pragma once

#include "kernels/activations.h"
#include "kernels/level.h"

namespace godwit::kernels {
namespace {

template <class V>
V rounded(V scaled) {
  const V round = V::set1(12582912.0f);  // 1.5 * 2^23
  return (V::min(V::max(scaled, V::set1(-127.0f)), V::set1(127.0f)) + round) - round;
}

template <class V>
void quantize_group(const float* x, std::int8_t* values, float* scale, float* sum, std::int32_t* half_sums) {
  const V a = V::load(x), b = V::load(x + 16);
  const float largest = V::max(V::abs(a), V::abs(b)).maximum();
  const float poison =
      V::fma(a, V::zero(), b * V::zero()).sum();  // zero, or NaN when an element is not finite
  const bool is_tiny = largest < 0x1p-100f;
  const V inverse = V::set1(is_tiny ? 0.0f : 127.0f / largest);
  const V qa = rounded(a * inverse), qb = rounded(b * inverse);
  qa.store_int8(values);
  qb.store_int8(values + 16);
  const float sum_a = qa.sum(), sum_b = qb.sum();  // exact: integers of at most 16 * 127
  half_sums[0] = static_cast<std::int32_t>(sum_a);
  half_sums[1] = static_cast<std::int32_t>(sum_b);
  *scale = (is_tiny ? 0.0f : largest / 127.0f) + poison;
  *sum = *scale * (sum_a + sum_b);
}

template <class V>
Level quantize_rows_body(const QuantizeRowsArgs& a) {
  const std::int64_t groups = a.n / kActivationGroup;
  for (std::int64_t row = 0; row < a.rows; row++)
    for (std::int64_t g = 0; g < groups; g++) {
      const std::int64_t at = row * groups + g;
      quantize_group<V>(a.x + row * a.x_stride + g * kActivationGroup, a.values + at * kActivationGroup,
                        a.scales + at, a.sums + at, a.half_sums + 2 * at);
    }
  return V::kLevel;
}

}  // namespace
}  // namespace godwit::kernels
