#pragma once

#include "kernels/level.h"
#include "kernels/vector_ops.h"

namespace godwit::kernels {
namespace {

template <class V>
Level add_body(const AddArgs& a) {
  std::int64_t i = 0;
  for (; i + 16 <= a.n; i += 16) (V::load(a.a + i) + V::load(a.b + i)).store(a.y + i);
  const std::int64_t rest = a.n - i;
  if (rest > 0) (V::load_first(a.a + i, rest) + V::load_first(a.b + i, rest)).store_first(a.y + i, rest);
  return V::kLevel;
}

// The maximum of [x, x + n); n > 0. max(new, best) keeps best where new is NaN.
template <class V>
float largest(const float* x, std::int64_t n) {
  const V lowest = V::set1(-__builtin_huge_valf());
  V best[4] = {lowest, lowest, lowest, lowest};
  std::int64_t i = 0;
  for (; i + 64 <= n; i += 64)
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) best[k] = V::max(V::load(x + i + 16 * k), best[k]);
  for (; i + 16 <= n; i += 16) best[0] = V::max(V::load(x + i), best[0]);
  const V index = V::iota();
  if (i < n) {
    const V rest =
        V::where_less(index, V::set1(static_cast<float>(n - i)), V::load_first(x + i, n - i), lowest);
    best[0] = V::max(rest, best[0]);
  }
  return V::max(V::max(best[0], best[1]), V::max(best[2], best[3])).maximum();
}

// Finds the maximum of each stretch, and the position only inside the stretch that raised it.
template <class V>
Level argmax_body(const ArgmaxArgs& a) {
  constexpr std::int64_t kStretch = 4096;
  float best = -__builtin_huge_valf();
  std::int64_t found = -1;
  for (std::int64_t begin = 0; begin < a.n; begin += kStretch) {
    const std::int64_t end = begin + kStretch < a.n ? begin + kStretch : a.n;
    const float here = largest<V>(a.x + begin, end - begin);
    if (found >= 0 && !(here > best)) continue;
    for (std::int64_t i = begin; i < end; i++)
      if (a.x[i] == here) {
        found = i;
        break;
      }
    best = here;
  }
  *a.index = found;
  return V::kLevel;
}

}  // namespace
}  // namespace godwit::kernels
