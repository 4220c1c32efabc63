// The frozen tables of the turbo codec, version 1. A changed number misreads every stored byte, so it needs a
// new version, which is part of every state signature.
#pragma once

#include <cstdint>

namespace godwit::kernels {

inline constexpr int kTurboTables = 1;

// The 2^bits Lloyd-Max levels of N(0, 1), ascending, symmetric; bits 2, 3, 4, 5 or 8. The memory behind holds
// at least 16 floats.
const float* turbo_levels(int bits);
// The 2^bits - 1 boundaries between them: midpoints.
const float* turbo_boundaries(int bits);
// Signs of the rotation for heads of `dim` elements (64, 128, 256 or 512): bit i % 64 of word i / 64 is set
// where element i is negated. The words are the first outputs of SplitMix64 from the state `dim`.
const std::uint64_t* turbo_signs(std::int64_t dim);
// 1 / sqrt(dim), rounded once to f32.
float turbo_factor(std::int64_t dim);

}  // namespace godwit::kernels
