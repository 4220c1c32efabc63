// exp and tanh for every level: one polynomial each, so one set of bits. Maximal errors measured in
// exp_test.cpp.
#pragma once

namespace godwit::kernels {
namespace {

// Relative error below 1.2e-7 where the result is a normal number; 0 below -87.33, infinity above 88.37,
// exp(0) = 1, NaN stays NaN. x = n ln2 + r with |r| <= ln2/2; the Taylor polynomial of degree 7 leaves
// out 5.2e-9.
template <class V>
[[gnu::always_inline]] inline V exp(V x) {
  constexpr float kLowest = -87.33f, kHighest = 88.37f;
  const V round = V::set1(12582912.0f);  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  const V shifted = V::fma(x, V::set1(1.44269504f), round);
  const V n = shifted - round;
  const V r = V::fma(n, V::set1(1.9046543e-9f), V::fma(n, V::set1(-0.693147182f), x));
  V p = V::set1(1.0f / 5040);
  p = V::fma(p, r, V::set1(1.0f / 720));
  p = V::fma(p, r, V::set1(1.0f / 120));
  p = V::fma(p, r, V::set1(1.0f / 24));
  p = V::fma(p, r, V::set1(1.0f / 6));
  p = V::fma(p, r, V::set1(0.5f));
  p = V::fma(p, r, V::set1(1.0f));
  p = V::fma(p, r, V::set1(1.0f));
  const V result = p * V::power_of_two(shifted);
  const V bounded = V::where_less(x, V::set1(kLowest), V::zero(), result);
  return V::where_less(V::set1(kHighest), x, V::set1(__builtin_huge_valf()), bounded);
}

// Relative error below 4e-7, odd, 1 at infinity, NaN stays NaN. Below 0.4 the Taylor polynomial of degree 13,
// which leaves out 4e-9; above, (1 - t) / (1 + t) with t = exp(-2 |x|), where 1 - t no longer cancels.
template <class V>
[[gnu::always_inline]] inline V tanh(V x) {
  const V size = V::abs(x), square = x * x;
  V p = V::set1(21844.0f / 6081075);
  p = V::fma(p, square, V::set1(-1382.0f / 155925));
  p = V::fma(p, square, V::set1(62.0f / 2835));
  p = V::fma(p, square, V::set1(-17.0f / 315));
  p = V::fma(p, square, V::set1(2.0f / 15));
  p = V::fma(p, square, V::set1(-1.0f / 3));
  const V near = V::fma(p, square * x, x);
  const V t = exp(size * V::set1(-2.0f)), one = V::set1(1.0f);
  const V far = (one - t) / (one + t);
  const V signed_far = V::where_less(x, V::zero(), V::negate(far), far);
  return V::where_less(size, V::set1(0.4f), near, signed_far);
}

}  // namespace
}  // namespace godwit::kernels
