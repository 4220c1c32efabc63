#pragma once

#include "kernels/level.h"
#include "kernels/rope.h"

namespace godwit::kernels {
namespace {

template <class V>
struct Rotated {
  V first, second;
};

template <class V>
Rotated<V> rotate(V first, V second, V cosine, V sine) {
  return {V::fma(first, cosine, V::negate(second * sine)), V::fma(second, cosine, first * sine)};
}

template <class V>
void rotate_head(float* x, const float* cosines, const float* sines, std::int64_t half) {
  std::int64_t i = 0;
  for (; i + 16 <= half; i += 16) {
    const auto r = rotate(V::load(x + i), V::load(x + half + i), V::load(cosines + i), V::load(sines + i));
    r.first.store(x + i);
    r.second.store(x + half + i);
  }
  const std::int64_t n = half - i;
  if (n == 0) return;
  const auto r = rotate(V::load_first(x + i, n), V::load_first(x + half + i, n),
                        V::load_first(cosines + i, n), V::load_first(sines + i, n));
  r.first.store_first(x + i, n);
  r.second.store_first(x + half + i, n);
}

template <class V>
Level rope_body(const RopeArgs& a) {
  const std::int64_t half = a.dims / 2;
  for (std::int64_t token = 0; token < a.tokens; token++)
    for (std::int64_t head = 0; head < a.heads; head++)
      rotate_head<V>(a.x + token * a.token_stride + head * a.head_dim, a.cosines + token * half,
                     a.sines + token * half, half);
  return V::kLevel;
}

}  // namespace
}  // namespace godwit::kernels
