// Random plans of native nodes, small, for tests.
#pragma once

#include <bit>
#include <memory>
#include <random>
#include <vector>

#include "ops/packed_matrix.h"

namespace godwit::ops::native_test {

inline std::vector<float> normals(std::mt19937& random, std::int64_t n, float spread) {
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& value : values) value = normal(random);
  return values;
}

// A matrix of bf16 numbers, or of blocks of Q8_0 whose bytes are random and whose scales are small.
inline std::shared_ptr<const PackedMatrix> random_matrix(std::mt19937& random, ThreadPool& pool, bool dense,
                                                         std::int64_t rows, std::int64_t columns) {
  std::vector<std::byte> bytes;
  const auto put = [&](std::uint16_t half) {
    bytes.push_back(static_cast<std::byte>(half & 255));
    bytes.push_back(static_cast<std::byte>(half >> 8));
  };
  if (dense)
    for (const float value : normals(random, rows * columns, 0.15f))
      put(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
  else
    for (std::int64_t block = 0; block < rows * columns / 32; ++block) {
      put(static_cast<std::uint16_t>(0x1400 + random() % 0x400));  // f16 of about 0.001 to 0.002
      for (int i = 0; i < 32; ++i) bytes.push_back(static_cast<std::byte>(random() % 256));
    }
  const auto format =
      dense ? kernels::packed_dense(kernels::ScaleType::bf16) : kernels::packed_format(kernels::BlockFormat::q8_0);
  return std::make_shared<PackedMatrix>(kernels::PackedShape{format, rows, columns}, bytes, pool);
}

}  // namespace godwit::ops::native_test
