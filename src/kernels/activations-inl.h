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

// Sixteen inputs. Returns the sum of the codes: exact, at most 16 * 127.
template <class V>
float quantize_group(const float* x, std::int8_t* values, float* scale) {
  const V a = V::load(x);
  const float largest = V::abs(a).maximum();
  const float poison = (a * V::zero()).sum();  // zero, or NaN when an element is not finite
  const bool is_tiny = largest < 0x1p-100f;
  const V codes = rounded(a * V::set1(is_tiny ? 0.0f : 127.0f / largest));
  codes.store_int8(values);
  *scale = (is_tiny ? 0.0f : largest / 127.0f) + poison;
  return codes.sum();
}

template <class V>
Level quantize_rows_body(const QuantizeRowsArgs& a) {
  const std::int64_t pairs = a.n / (2 * kActivationGroup);
  for (std::int64_t row = 0; row < a.rows; row++)
    for (std::int64_t pair = 0; pair < pairs; pair++) {
      const std::int64_t at = row * pairs + pair;
      const float* x = a.x + row * a.x_stride + pair * 2 * kActivationGroup;
      std::int8_t* values = a.values + at * 2 * kActivationGroup;
      float* scales = a.scales + 2 * at;
      const float first = quantize_group<V>(x, values, scales);
      const float second = quantize_group<V>(x + kActivationGroup, values + kActivationGroup, scales + 1);
      a.code_sums[2 * at] = static_cast<std::int32_t>(first);
      a.code_sums[2 * at + 1] = static_cast<std::int32_t>(second);
      a.sums[at] = scales[0] * first + scales[1] * second;
    }
  return V::kLevel;
}

}  // namespace
}  // namespace godwit::kernels
