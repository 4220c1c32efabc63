// Seeded arrays of normal numbers, for tests that need some weights.
#pragma once

#include <random>
#include <vector>

#include "base/mx_ops.h"

namespace godwit::testing_support {

// Deviation `spread`; drawn in f32, then in `dtype`.
inline mx::array random_array(const mx::Shape& shape, unsigned seed, float spread, mx::Dtype dtype = mx::float32) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, spread);
  std::size_t count = 1;
  for (const int size : shape) count *= static_cast<std::size_t>(size);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return mx::astype(mx::array(values.data(), shape), dtype);
}

inline mx::array random_array(const mx::Shape& shape, unsigned seed, mx::Dtype dtype = mx::float32) {
  return random_array(shape, seed, 1.0f, dtype);
}

}  // namespace godwit::testing_support
