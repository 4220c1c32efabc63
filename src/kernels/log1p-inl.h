// log(1 + x) for x in [0, 1], and softplus on top of it, for every level: one polynomial, so one set of bits.
#pragma once

#include "kernels/exp-inl.h"

namespace godwit::kernels {
namespace {

// Relative error below 3e-7 (log1p_test.cpp). log(1 + x) = 2 atanh(s), s = x / (2 + x) <= 1/3: the odd series
// up to s^15 leaves out 3e-10 of its value.
template <class V>
[[gnu::always_inline]] inline V log1p_of_unit(V x) {
  const V s = x / (x + V::set1(2.0f));
  const V t = s * s;
  V p = V::set1(1.0f / 15);
  p = V::fma(p, t, V::set1(1.0f / 13));
  p = V::fma(p, t, V::set1(1.0f / 11));
  p = V::fma(p, t, V::set1(1.0f / 9));
  p = V::fma(p, t, V::set1(1.0f / 7));
  p = V::fma(p, t, V::set1(1.0f / 5));
  p = V::fma(p, t, V::set1(1.0f / 3));
  p = V::fma(p, t, V::set1(1.0f));
  return (s + s) * p;
}

// log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)); 0 below -87.33, NaN stays NaN.
template <class V>
[[gnu::always_inline]] inline V softplus(V x) {
  return V::max(V::zero(), x) + log1p_of_unit(exp(V::negate(V::abs(x))));
}

}  // namespace
}  // namespace godwit::kernels
