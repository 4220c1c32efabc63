// The most tokens that one step takes of a prompt: what a sliding layer may hold beyond its window.
#pragma once

namespace godwit::cache {

inline constexpr int kReferenceChunk = 2048;  // mlx-lm's prefill step
inline constexpr int kNativeChunk = 256;      // no bit depends on it

}  // namespace godwit::cache
