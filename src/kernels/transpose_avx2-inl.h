// A square of 16 x 16 floats turned by AVX2, for both levels that have it.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace godwit::kernels {
namespace {

// An 8 x 8 square: pairs of rows are interleaved, then pairs of pairs, then 128-bit halves change places.
[[gnu::always_inline]] inline void transpose_eight(const float* from, std::int64_t from_stride, float* to,
                                                   std::int64_t to_stride) {
  __m256 row[8], pair[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) row[i] = _mm256_loadu_ps(from + i * from_stride);
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    pair[i] = _mm256_unpacklo_ps(row[i], row[i + 1]);
    pair[i + 1] = _mm256_unpackhi_ps(row[i], row[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    row[i] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0x44);
    row[i + 1] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0xee);
    row[i + 2] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0x44);
    row[i + 3] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    _mm256_storeu_ps(to + i * to_stride, _mm256_permute2f128_ps(row[i], row[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * to_stride, _mm256_permute2f128_ps(row[i], row[i + 4], 0x31));
  }
}

inline void transpose_avx2(const float* from, std::int64_t from_stride, float* to, std::int64_t to_stride) {
  for (int i = 0; i < 16; i += 8)
    for (int j = 0; j < 16; j += 8)
      transpose_eight(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
}

}  // namespace
}  // namespace godwit::kernels
