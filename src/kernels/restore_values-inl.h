#pragma once

#include "kernels/kv_plane.h"
#include "kernels/level.h"
#include "kernels/restore_values.h"
#include "kernels/turbo_tables.h"

namespace godwit::kernels {
namespace {

// Distances below a vector: pair by pair.
inline void butterfly_within(float* x, std::int64_t dim, std::int64_t distance) {
  for (std::int64_t i = 0; i < dim; i += 2 * distance)
    for (std::int64_t j = i; j < i + distance; j++) {
      const float a = x[j], b = x[j + distance];
      x[j] = a + b;
      x[j + distance] = a - b;
    }
}

template <class V>
void butterfly_across(float* x, std::int64_t dim, std::int64_t distance) {
  for (std::int64_t i = 0; i < dim; i += 2 * distance)
    for (std::int64_t j = i; j < i + distance; j += 16) {
      const V a = V::load(x + j), b = V::load(x + j + distance);
      (a + b).store(x + j);
      (a - b).store(x + j + distance);
    }
}

template <class V>
Level restore_values_body(const RestoreValuesArgs& a) {
  const std::uint64_t* signs = turbo_signs(a.dim);
  const V factor = V::set1(turbo_factor(a.dim));
  for (std::int64_t row = 0; row < a.rows; row++) {
    float* x = a.x + row * a.stride;
    for (std::int64_t distance = 1; distance < 16; distance *= 2) butterfly_within(x, a.dim, distance);
    for (std::int64_t distance = 16; distance < a.dim; distance *= 2) butterfly_across<V>(x, a.dim, distance);
    for (std::int64_t i = 0; i < a.dim; i += 16) (V::load(x + i) * factor).store(x + i);
    for (std::int64_t i = 0; i < a.dim; i++)
      if (signs[i / 64] >> (i % 64) & 1) x[i] = -x[i];
  }
  return V::kLevel;
}

}  // namespace
}  // namespace godwit::kernels
