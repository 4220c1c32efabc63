#include "cache/reference_turbo.h"

#include <cstdint>
#include <vector>

#include "base/mx_ops.h"
#include "cache/bit_stream.h"
#include "kernels/turbo_tables.h"

namespace godwit::cache {
namespace {

constexpr float kEpsilon = 1e-8f;  // of the published format
constexpr float kLargestHalf = 65504.0f, kSmallestHalf = 0x1p-24f;

mx::array constant(float value) { return mx::array(value, mx::float32); }

mx::array levels(int bits) { return mx::array(kernels::turbo_levels(bits), {1 << bits}, mx::float32); }

mx::array boundaries(int bits) {
  return mx::array(kernels::turbo_boundaries(bits), {(1 << bits) - 1}, mx::float32);
}

// [dim] of 1 and -1.
mx::array signs(int dim) {
  const std::uint64_t* words = kernels::turbo_signs(dim);
  std::vector<float> values;
  for (int i = 0; i < dim; ++i) values.push_back(words[i / 64] >> (i % 64) & 1 ? -1.0f : 1.0f);
  return mx::array(values.data(), {dim}, mx::float32);
}

// [..., dim] -> f32 [..., dim / 32, 32]
mx::array in_groups(const mx::array& x) {
  mx::Shape shape = x.shape();
  shape.back() /= kTurboGroup;
  shape.push_back(kTurboGroup);
  return mx::reshape(mx::astype(x, mx::float32), shape);
}

mx::array ungrouped(const mx::array& x) { return mx::flatten(x, -2, -1); }

// One parameter per group: [..., dim / 32, 1] f32 -> [..., dim / 32] f16, and back.
mx::array stored(const mx::array& x) { return mx::astype(mx::squeeze(x, -1), mx::float16); }
mx::array loaded(const mx::array& x) { return mx::expand_dims(mx::astype(x, mx::float32), -1); }

// Codes of keys are whole numbers in f32 from `lowest` to lowest + 2^bits - 1 or, signed, - 2.
struct KeyRange {
  explicit KeyRange(int bits)
      : lowest(bits == 8 ? -127.0f : 0.0f),
        highest(bits == 8 ? 127.0f : static_cast<float>((1 << bits) - 1)) {}
  float lowest, highest;
};

mx::array packed_key_codes(const mx::array& codes, int bits) {
  if (bits == 8) return mx::astype(ungrouped(codes), mx::int8);
  return pack_bits(mx::astype(ungrouped(codes), mx::uint32), bits);
}

mx::array key_codes(const mx::array& plane, int bits) {
  return in_groups(bits == 8 ? plane : unpack_bits(plane, bits));
}

std::vector<mx::array> encode_published(const mx::array& x, int bits) {
  const KeyRange range(bits);
  const mx::array low = mx::min(x, -1, true);
  const mx::array high = mx::max(x, -1, true);
  const bool centred = bits == 8;
  const mx::array scale = (high - low) / constant(range.highest - range.lowest);
  const mx::array step = scale + constant(kEpsilon);
  const mx::array zero = mx::round(centred ? (high + low) / (constant(2.0f) * step) : low / step);
  const mx::array codes =
      mx::clip(mx::round(x / step - zero), constant(range.lowest), constant(range.highest));
  return {packed_key_codes(codes, bits), stored(scale), stored(zero)};
}

// f16 neighbours of what rounding to nearest gives, by their bits. `x` lies in f16's range.
mx::array half_not_below(const mx::array& x) {  // x > 0
  const mx::array nearest = mx::view(mx::astype(x, mx::float16), mx::uint16);
  const mx::array above = mx::view(nearest + mx::array(1, mx::uint16), mx::float16);
  const mx::array half = mx::view(nearest, mx::float16);
  return mx::where(mx::astype(half, mx::float32) < x, above, half);
}

mx::array half_not_above(const mx::array& x) {
  const mx::array half = mx::astype(x, mx::float16);
  // Below 0 the bits grow away from 0, and the step below 0 is the smallest negative number.
  const mx::array bits = mx::view(half, mx::uint16);
  const mx::array one = mx::array(1, mx::uint16);
  const mx::array below =
      mx::where(half > mx::array(0, mx::float16), bits - one,
                mx::where(half < mx::array(0, mx::float16), bits + one, mx::array(0x8001, mx::uint16)));
  return mx::where(mx::astype(half, mx::float32) > x, mx::view(below, mx::float16), half);
}

mx::array in_half_range(const mx::array& x) {
  return mx::clip(x, constant(-kLargestHalf), constant(kLargestHalf));
}

// What is stored is chosen so that the grid covers the group: kernels/kv_codec.h has the same definition.
std::vector<mx::array> encode_safe(const mx::array& x, int bits) {
  const KeyRange range(bits);
  const mx::array low = mx::min(x, -1, true), high = mx::max(x, -1, true);
  const bool centred = bits == 8;
  const mx::array base = centred ? mx::astype(in_half_range((high + low) / constant(2.0f)), mx::float16)
                                 : half_not_above(in_half_range(low));
  const mx::array at = mx::astype(base, mx::float32);
  const mx::array reach = centred ? mx::maximum(high - at, at - low) : high - at;
  const mx::array scale = half_not_below(
      mx::clip(reach / constant(range.highest), constant(kSmallestHalf), constant(kLargestHalf)));
  const mx::array codes = mx::clip(mx::round((x - at) / mx::astype(scale, mx::float32)),
                                   constant(range.lowest), constant(range.highest));
  return {packed_key_codes(codes, bits), mx::squeeze(scale, -1), mx::squeeze(base, -1)};
}

// How many boundaries lie strictly below u: one bit of the answer after the other.
mx::array cell_of(const mx::array& u, int bits) {
  const mx::array edges = boundaries(bits);
  mx::array cell = mx::zeros(u.shape(), mx::uint32);
  for (int bit = bits - 1; bit >= 0; --bit) {
    const mx::array step = mx::array(1u << bit, mx::uint32);
    const mx::array candidate = mx::take(edges, cell + step - mx::array(1u, mx::uint32));
    cell = mx::where(candidate < u, cell + step, cell);
  }
  return cell;
}

}  // namespace

std::vector<mx::array> encode_turbo_keys(const Codec& codec, const mx::array& x) {
  return codec.parity ? encode_published(in_groups(x), codec.key_bits)
                      : encode_safe(in_groups(x), codec.key_bits);
}

std::vector<mx::array> encode_turbo_values(const Codec& codec, const mx::array& x) {
  const mx::array y = in_groups(mx::hadamard_transform(signs(x.shape(-1)) * mx::astype(x, mx::float32)));
  const mx::array scale = mx::sqrt(mx::mean(y * y, -1, true));
  const mx::array cells = ungrouped(cell_of(y / (scale + constant(kEpsilon)), codec.value_bits));
  const bool whole = codec.value_bits == 8;
  return {whole ? mx::astype(cells, mx::uint8) : pack_bits(cells, codec.value_bits), stored(scale)};
}

mx::array decode_turbo_keys(const Codec& codec, const std::vector<mx::array>& planes, mx::Dtype type) {
  const mx::array codes = key_codes(planes[0], codec.key_bits);
  if (codec.parity) return mx::astype(ungrouped((codes + loaded(planes[2])) * loaded(planes[1])), type);
  return mx::astype(ungrouped(codes * loaded(planes[1]) + loaded(planes[2])), type);
}

mx::array decode_rotated(const Codec& codec, const std::vector<mx::array>& planes, mx::Dtype type) {
  const mx::array cells = codec.value_bits == 8 ? planes[0] : unpack_bits(planes[0], codec.value_bits);
  const mx::array unit = mx::take(levels(codec.value_bits), mx::astype(cells, mx::uint32));
  return mx::astype(ungrouped(in_groups(unit) * loaded(planes[1])), type);
}

mx::array decode_turbo_values(const Codec& codec, const std::vector<mx::array>& planes, mx::Dtype type) {
  return mx::astype(inverse_transform(decode_rotated(codec, planes, mx::float32)), type);
}

mx::array inverse_transform(const mx::array& x) {
  return mx::astype(signs(x.shape(-1)) * mx::hadamard_transform(mx::astype(x, mx::float32)), x.dtype());
}

}  // namespace godwit::cache
