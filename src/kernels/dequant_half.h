// f16 to f32 without hardware or library help: exact on every input, subnormals, infinities and NaN payloads
// included.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace godwit::kernels {

inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000u} << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1f;
  std::uint32_t fraction = half & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  // Subnormal: fraction * 2^-24, which f32 holds as a normal number.
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
}

inline float load_half(const unsigned char* bytes) {
  std::uint16_t half;
  std::memcpy(&half, bytes, sizeof half);
  return half_to_float(half);
}

}  // namespace godwit::kernels
