#include "kernels/packed_layout.h"

#include <cstring>

#include "base/error.h"

namespace godwit::kernels {

using Byte = std::uint8_t;

int affine_bits(const PackedFormat& format) {
  switch (format.codes) {
    case PackedCodes::affine2:
      return 2;
    case PackedCodes::affine3:
      return 3;
    case PackedCodes::affine4:
      return 4;
    case PackedCodes::affine5:
      return 5;
    case PackedCodes::affine6:
      return 6;
    case PackedCodes::affine8:
      return 8;
    default:
      return 0;
  }
}

bool is_affine(const PackedFormat& format) {
  return affine_bits(format) != 0;
}

Layout layout_of(const PackedFormat& format) {
  switch (format.codes) {
    case PackedCodes::q8_0:
      return {1, 2, 0, 0, 8, 128};
    case PackedCodes::q5_0:
      return {1, 2, 0, 1, 4, 16};
    case PackedCodes::q5_1:
      return {2, 2, 0, 1, 4, 0};
    case PackedCodes::q4_0:
      return {1, 2, 0, 0, 4, 8};
    case PackedCodes::q4_1:
      return {2, 2, 0, 0, 4, 0};
    case PackedCodes::q4_k:
      return {2, 2, 12, 0, 4, 0};
    case PackedCodes::q5_k:
      return {2, 2, 12, 1, 4, 0};
    case PackedCodes::q6_k:
      return {1, 2, 16, 2, 4, 32};
    case PackedCodes::q3_k:
      return {1, 2, 12, 1, 2, 4};
    case PackedCodes::q2_k:
      return {2, 2, 16, 0, 2, 0};
    case PackedCodes::iq4_nl:
      return {1, 2, 0, 0, 4, 128};
    case PackedCodes::iq4_xs:
      return {1, 2, 6, 0, 4, 128};
    case PackedCodes::mxfp4:
      return {1, 1, 0, 0, 4, 12};
    case PackedCodes::dense:  // no codes, but as many lines as a number has bits
      return {0, 2, 0, 0, 16, 0};
    default:
      break;
  }
  const int bits = affine_bits(format), low = bits == 8 ? 8 : bits >= 4 ? 4 : 2;
  return {2, format.scales == ScaleType::f32 ? 4 : 2, 0, bits - low, low, 0};
}

std::int64_t record_bytes(const PackedFormat& format) {
  const Layout layout = layout_of(format);
  return layout.head_bytes() + format.group / 32 * layout.group_bytes();
}

void check_columns(const PackedShape& shape) {
  if (shape.columns % shape.format.group != 0)
    fail(ErrorCode::invalid_argument, "packed_weights", "{} columns are no multiple of {}", shape.columns,
         shape.format.group);
}

namespace {

constexpr std::uint32_t kEach = 0x01010101;  // one in each of four codes

// Four codes of `bits` bits, a byte each, of step `step` and row r into lines that hold those bits of each of the eight
// steps. What is shifted stays within its byte.
void put_bits(int bits, std::uint32_t codes, int step, int r, Byte* lines) {
  const int per_byte = 8 / bits;
  Byte* const at = lines + step / per_byte * 64 + 4 * r;
  std::uint32_t held;
  std::memcpy(&held, at, sizeof held);
  held |= codes << step % per_byte * bits;
  std::memcpy(at, &held, sizeof held);
}
int get_bits(int bits, int step, int lane, const Byte* lines) {
  const int per_byte = 8 / bits;
  return lines[step / per_byte * 64 + lane] >> step % per_byte * bits & ((1 << bits) - 1);
}

}  // namespace

void place_codes(const Layout& l, const Byte* codes, int r, Byte* lines) {
  Byte* low = lines + l.high_bits * 64;
  const std::uint32_t flip = l.low_bits == 8 ? 0x80 * kEach : 0;  // the pattern of an int8
  const std::uint32_t low_mask = ((1u << l.low_bits) - 1) * kEach, high_mask = ((1u << l.high_bits) - 1) * kEach;
  for (int step = 0; step < 8; step++) {
    std::uint32_t four;
    std::memcpy(&four, codes + 4 * step, sizeof four);
    put_bits(l.low_bits, (four ^ flip) & low_mask, step, r, low);
    if (l.high_bits != 0) put_bits(l.high_bits, four >> l.low_bits & high_mask, step, r, lines);
  }
}

void take_codes(const Layout& l, const Byte* lines, int r, Byte* codes) {
  const Byte* low = lines + l.high_bits * 64;
  const int flip = l.low_bits == 8 ? 0x80 : 0;
  for (int k = 0; k < 32; k++) {
    const int step = k / 4, lane = 4 * r + k % 4;
    int code = get_bits(l.low_bits, step, lane, low) ^ flip;
    if (l.high_bits != 0) code |= get_bits(l.high_bits, step, lane, lines) << l.low_bits;
    codes[k] = static_cast<Byte>(code);
  }
}

}  // namespace godwit::kernels
