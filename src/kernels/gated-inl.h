#pragma once

#include "kernels/exp-inl.h"
#include "kernels/gated.h"
#include "kernels/level.h"

namespace godwit::kernels {
namespace {

// g / (1 + exp(-z)); z = g is silu. An exp that reaches infinity gives -0 or +0.
template <class V>
[[gnu::always_inline]] inline V times_sigmoid(V g, V z) {
  return g / (V::set1(1.0f) + exp(V::negate(z)));
}

template <class V, Activation kActivation>
[[gnu::always_inline]] inline V activated(V g) {
  if constexpr (kActivation == Activation::silu) return times_sigmoid(g, g);
  if constexpr (kActivation == Activation::sigmoid) return times_sigmoid(V::set1(1.0f), g);
  const V linear = V::set1(1.59576912f),
          cubic = V::set1(0.0713548163f);  // 2 sqrt(2/pi), and that times 0.044715
  return times_sigmoid(g, g * V::fma(g * g, cubic, linear));
}

template <class V, Activation kActivation>
void gated_row(const float* gate, const float* up, float* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) (activated<V, kActivation>(V::load(gate + i)) * V::load(up + i)).store(y + i);
  const std::int64_t rest = n - i;
  if (rest == 0) return;
  (activated<V, kActivation>(V::load_first(gate + i, rest)) * V::load_first(up + i, rest))
      .store_first(y + i, rest);
}

template <class V>
Level gated_body(const GatedArgs& a) {
  const auto row = a.activation == Activation::silu      ? gated_row<V, Activation::silu>
                   : a.activation == Activation::sigmoid ? gated_row<V, Activation::sigmoid>
                                                         : gated_row<V, Activation::gelu_tanh>;
  for (std::int64_t r = 0; r < a.rows; r++)
    row(a.gate + r * a.gate_stride, a.up + r * a.up_stride, a.y + r * a.y_stride, a.n);
  return V::kLevel;
}

}  // namespace
}  // namespace godwit::kernels
