#pragma once

#include "kernels/exp-inl.h"
#include "kernels/level.h"
#include "kernels/routing.h"

namespace godwit::kernels {
namespace {

// Several outputs share one read of x and keep as many chains of fma busy.
template <class V, int kOutputs>
void dot_outputs(const float* x, const float* weights, float* y, std::int64_t n) {
  V sums[kOutputs];
#pragma GCC unroll 4
  for (int o = 0; o < kOutputs; o++) sums[o] = V::zero();
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const V part = V::load(x + i);
#pragma GCC unroll 4
    for (int o = 0; o < kOutputs; o++) sums[o] = V::fma(part, V::load(weights + o * n + i), sums[o]);
  }
  if (i < n) {
    const V part = V::load_first(x + i, n - i);
#pragma GCC unroll 4
    for (int o = 0; o < kOutputs; o++)
      sums[o] = V::fma(part, V::load_first(weights + o * n + i, n - i), sums[o]);
  }
#pragma GCC unroll 4
  for (int o = 0; o < kOutputs; o++) y[o] = sums[o].sum();
}

// All rows pass by while a few rows of weights stay near.
template <class V>
Level row_dots_body(const RowDotsArgs& a) {
  std::int64_t o = 0;
  for (; o + 4 <= a.outputs; o += 4)
    for (std::int64_t r = 0; r < a.rows; r++)
      dot_outputs<V, 4>(a.x + r * a.x_stride, a.weights + o * a.n, a.y + r * a.y_stride + o, a.n);
  for (; o < a.outputs; o++)
    for (std::int64_t r = 0; r < a.rows; r++)
      dot_outputs<V, 1>(a.x + r * a.x_stride, a.weights + o * a.n, a.y + r * a.y_stride + o, a.n);
  return V::kLevel;
}

// The largest element of x, n > 0; a NaN does not win.
template <class V>
float row_maximum(const float* x, std::int64_t n) {
  const V lowest = V::set1(-__builtin_huge_valf());
  V best = lowest;
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) best = V::max(V::load(x + i), best);
  if (i < n) {
    const V inside = V::set1(static_cast<float>(n - i));
    best = V::max(V::where_less(V::iota(), inside, V::load_first(x + i, n - i), lowest), best);
  }
  return best.maximum();
}

template <class V>
void softmax_row(const float* x, float* y, std::int64_t n) {
  const V maximum = V::set1(row_maximum<V>(x, n));
  V sums = V::zero();
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const V part = exp(V::load(x + i) - maximum);
    sums = sums + part;
    part.store(y + i);
  }
  if (const std::int64_t rest = n - i; rest > 0) {
    const V part = exp(V::load_first(x + i, rest) - maximum);
    sums = sums + V::where_less(V::iota(), V::set1(static_cast<float>(rest)), part, V::zero());
    part.store_first(y + i, rest);
  }
  const V sum = V::set1(sums.sum());
  for (i = 0; i + 16 <= n; i += 16) (V::load(y + i) / sum).store(y + i);
  if (i < n) (V::load_first(y + i, n - i) / sum).store_first(y + i, n - i);
}

template <class V>
Level softmax_body(const SoftmaxArgs& a) {
  for (std::int64_t r = 0; r < a.rows && a.n > 0; r++) softmax_row<V>(a.x + r * a.n, a.y + r * a.n, a.n);
  return V::kLevel;
}

template <class V>
Level sigmoid_body(const SigmoidArgs& a) {
  const V one = V::set1(1.0f);
  std::int64_t i = 0;
  for (; i + 16 <= a.n; i += 16) (one / (one + exp(V::negate(V::load(a.x + i))))).store(a.y + i);
  const std::int64_t rest = a.n - i;
  if (rest > 0) (one / (one + exp(V::negate(V::load_first(a.x + i, rest))))).store_first(a.y + i, rest);
  return V::kLevel;
}

// load(row) and store(sum) of sixteen elements, or of the rest of them.
template <class V, class Load, class Store>
[[gnu::always_inline]] inline void sum_part(const WeightedSumArgs& a, Load load, Store store) {
  V sum = V::zero();
  for (std::int64_t j = 0; j < a.count; j++) {
    const V part = load(a.rows + a.index[j] * a.n), weight = V::set1(a.weights[j]);
    sum = j == 0 ? part * weight : V::fma(part, weight, sum);
  }
  store(sum);
}

template <class V>
Level weighted_sum_body(const WeightedSumArgs& a) {
  std::int64_t i = 0;
  for (; i + 16 <= a.n; i += 16)
    sum_part<V>(
        a, [&](const float* row) { return V::load(row + i); }, [&](V sum) { sum.store(a.y + i); });
  const std::int64_t rest = a.n - i;
  if (rest > 0)
    sum_part<V>(
        a, [&](const float* row) { return V::load_first(row + i, rest); },
        [&](V sum) { sum.store_first(a.y + i, rest); });
  return V::kLevel;
}

}  // namespace
}  // namespace godwit::kernels
