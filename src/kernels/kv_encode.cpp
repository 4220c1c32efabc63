#include "kernels/kv_encode.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/attention.h"
#include "kernels/half.h"
#include "kernels/kv_codec.h"
#include "kernels/turbo_tables.h"

namespace godwit::kernels {
namespace {

constexpr float kHuge = 65504.0f;  // of f16
constexpr std::uint16_t kHalfSign = 0x8000, kLeastHalf = 0x0001;

// Half to even, of any f32: from 2^23 on all are integers.
float round_even(float x) {
  const float size = std::fabs(x);
  return size < 0x1p23f ? std::copysign((size + 0x1p23f) - 0x1p23f, x) : x;
}

// The integer nearest to x within [least, most]; `least` for NaN.
std::uint8_t code_of(float x, float least, float most) {
  const float above = x > least ? x : least;
  return static_cast<std::uint8_t>(static_cast<int>(round_even(above < most ? above : most)));
}

std::uint16_t finite_half(float x) {
  if (!(x == x)) return 0;
  return float_to_f16(std::clamp(x, -kHuge, kHuge));
}

// The largest finite f16 that is not above x, -65504 where there is none.
std::uint16_t half_down(float x) {
  const std::uint16_t near = finite_half(x);
  if (!(half_to_float(near) > std::max(x, -kHuge))) return near;
  if (near == 0) return kHalfSign | kLeastHalf;
  return static_cast<std::uint16_t>(near & kHalfSign ? near + 1 : near - 1);
}

// The smallest f16 in [2^-24, 65504] that is not below x, 65504 where there is none.
std::uint16_t half_up_scale(float x) {
  const std::uint16_t near = x > 0.0f ? finite_half(x) : std::uint16_t{0};
  const bool is_below = half_to_float(near) < std::min(x, kHuge);
  return std::max(static_cast<std::uint16_t>(near + (is_below ? 1 : 0)), kLeastHalf);
}

struct Range {
  float lo = HUGE_VALF, hi = -HUGE_VALF;
};
Range range_of(const float* x, int count) {
  Range range;
  for (int i = 0; i < count; i++) {
    range.lo = x[i] < range.lo ? x[i] : range.lo;
    range.hi = x[i] > range.hi ? x[i] : range.hi;
  }
  return range;
}

struct Parameters {
  std::uint16_t first, second;
};

// code = round((x - origin) / scale), both as they were rounded.
Parameters write_codes(const float* x, int count, Parameters p, float least, float most,
                       std::uint8_t* codes) {
  const float scale = half_to_float(p.first), origin = half_to_float(p.second);
  for (int i = 0; i < count; i++) codes[i] = code_of((x[i] - origin) / scale, least, most);
  return p;
}

Parameters affine_group(const float* x, int count, int bits, std::uint8_t* codes) {
  const auto most = static_cast<float>((1 << bits) - 1);
  const Range range = range_of(x, count);
  float scale = std::max((range.hi - range.lo) / most, 1e-7f), bias = 0.0f;
  const bool from_low = std::fabs(range.lo) > std::fabs(range.hi);
  const float edge = from_low ? range.lo : range.hi;
  if (!from_low) scale = -scale;
  const float steps = round_even(edge / scale);
  if (steps != 0.0f) {
    scale = edge / steps;
    bias = edge;
  }
  return write_codes(x, count, {finite_half(scale), finite_half(bias)}, 0.0f, most, codes);
}

Parameters safe_keys_group(const float* x, int count, int bits, std::uint8_t* codes) {
  const Range range = range_of(x, count);
  if (bits == 8) {
    const std::uint16_t middle = finite_half((range.hi + range.lo) / 2);
    const float at = half_to_float(middle);
    const std::uint16_t scale = half_up_scale(std::max(range.hi - at, at - range.lo) / 127);
    return write_codes(x, count, {scale, middle}, -127.0f, 127.0f, codes);
  }
  const auto most = static_cast<float>((1 << bits) - 1);
  const std::uint16_t low = half_down(range.lo);
  const std::uint16_t scale = half_up_scale((range.hi - half_to_float(low)) / most);
  return write_codes(x, count, {scale, low}, 0.0f, most, codes);
}

Parameters published_keys_group(const float* x, int count, int bits, std::uint8_t* codes) {
  const Range range = range_of(x, count);
  const bool is_signed = bits == 8;
  const float most = is_signed ? 127.0f : static_cast<float>((1 << bits) - 1),
              least = is_signed ? -most : 0.0f;
  const float scale = (range.hi - range.lo) / (is_signed ? 254.0f : most), divisor = scale + 1e-8f;
  const float zero = round_even(is_signed ? (range.hi + range.lo) / (2.0f * divisor) : range.lo / divisor);
  for (int i = 0; i < count; i++) codes[i] = code_of(x[i] / divisor - zero, least, most);
  return {float_to_f16(scale), float_to_f16(zero)};
}

// y is rotated.
Parameters values_group(const float* y, int count, int bits, std::uint8_t* codes) {
  double sum = 0.0;
  for (int i = 0; i < count; i++) sum += static_cast<double>(y[i]) * y[i];
  const auto size = static_cast<float>(std::sqrt(sum / count));
  const float divisor = size + 1e-8f;
  const float* boundaries = turbo_boundaries(bits);
  const float* end = boundaries + (1 << bits) - 1;
  for (int i = 0; i < count; i++)
    codes[i] = static_cast<std::uint8_t>(std::lower_bound(boundaries, end, y[i] / divisor) - boundaries);
  return {finite_half(size), 0};
}

// Eight codes fill `bits` bytes.
void pack_codes(const std::uint8_t* codes, std::int64_t count, int bits, unsigned char* out) {
  for (std::int64_t i = 0; i < count; i += 8) {
    std::uint64_t word = 0;
    for (int j = 0; j < 8; j++) word |= std::uint64_t{codes[i + j]} << (j * bits);
    for (int byte = 0; byte < bits; byte++) *out++ = static_cast<unsigned char>(word >> (8 * byte));
  }
}

}  // namespace

void encode_record(const KvPlane& plane, const float* x, unsigned char* record) {
  std::uint8_t codes[kMaxHeadDim];
  float rotated[512];
  const bool is_values = plane.form == KvForm::turbo_values;
  if (is_values) {
    std::copy_n(x, plane.dim, rotated);
    rotate_values(rotated, plane.dim);
    x = rotated;
  }
  const auto group = is_values                      ? values_group
                     : plane.form == KvForm::affine ? affine_group
                     : plane.parity                 ? published_keys_group
                                                    : safe_keys_group;
  unsigned char* parameters = record + plane.dim * plane.bits / 8;
  for (std::int64_t at = 0; at < plane.dim; at += plane.group) {
    const Parameters p = group(x + at, plane.group, plane.bits, codes + at);
    const std::size_t bytes = is_values ? 2 : 4;
    std::memcpy(parameters, &p, bytes);
    parameters += bytes;
  }
  pack_codes(codes, plane.dim, plane.bits, record);
}

}  // namespace godwit::kernels
