// Block formats of 32 elements. In all 4-bit layouts byte i holds element i in its low and element i + 16 in
// its high nibble.
#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/dequant_blocks.h"
#include "kernels/dequant_half.h"
#include "kernels/dequant_rows.h"

namespace godwit::kernels {

float half_of_e8m0(unsigned char e) {
  return std::bit_cast<float>(e < 2 ? 0x00200000u << e : std::uint32_t{e - 1u} << 23);
}

namespace detail {
namespace {

std::uint32_t load_u32(Bytes bytes) {
  std::uint32_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// Calls value(element, nibble) for the 32 elements of 16 bytes.
template <typename Value>
void for_nibbles(Bytes quants, float* out, Value&& value) {
  for (int i = 0; i < 16; ++i) {
    out[i] = value(i, quants[i] & 15);
    out[i + 16] = value(i + 16, quants[i] >> 4);
  }
}

int with_fifth_bit(std::uint32_t high, int element, int nibble) {
  return nibble | ((high >> element & 1) << 4);
}

}  // namespace

void q4_0(Bytes block, float* out) {
  const float d = load_half(block);
  for_nibbles(block + 2, out, [d](int, int q) { return d * static_cast<float>(q - 8); });
}

void q4_1(Bytes block, float* out) {
  const float d = load_half(block), m = load_half(block + 2);
  for_nibbles(block + 4, out, [d, m](int, int q) { return d * static_cast<float>(q) + m; });
}

void q5_0(Bytes block, float* out) {
  const float d = load_half(block);
  const std::uint32_t high = load_u32(block + 2);
  for_nibbles(block + 6, out,
              [=](int i, int q) { return d * static_cast<float>(with_fifth_bit(high, i, q) - 16); });
}

void q5_1(Bytes block, float* out) {
  const float d = load_half(block), m = load_half(block + 2);
  const std::uint32_t high = load_u32(block + 4);
  for_nibbles(block + 8, out,
              [=](int i, int q) { return d * static_cast<float>(with_fifth_bit(high, i, q)) + m; });
}

void q8_0(Bytes block, float* out) {
  const float d = load_half(block);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(static_cast<signed char>(block[2 + i]));
}

void iq4_nl(Bytes block, float* out) {
  const float d = load_half(block);
  for_nibbles(block + 2, out, [d](int, int q) { return d * static_cast<float>(kIq4Values[q]); });
}

void mxfp4(Bytes block, float* out) {
  // Twice the E2M1 values times half the scale.
  static constexpr float kDoubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const float half_scale = half_of_e8m0(block[0]);
  for_nibbles(block + 1, out, [half_scale](int, int q) { return half_scale * kDoubled[q]; });
}

}  // namespace detail
}  // namespace godwit::kernels
