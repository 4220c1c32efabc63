#include "cache/reference_turbo.h"

#include <cstdint>
#include <vector>

#include "base/mx_ops.h"
#include "cache/bit_stream.h"
#include "kernels/turbo_tables.h"

namespace godwit::cache {
namespace {

constexpr float kEpsilon = 1e-8f;  // of the published format
constexpr float kSmallestScale = 1e-7f;

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

std::vector<mx::array> encode_safe(const mx::array& x, int bits) {
  const KeyRange range(bits);
  const mx::array low = stored(mx::min(x, -1, true));
  const mx::array span = mx::max(x, -1, true) - loaded(low);
  const mx::array scale =
      stored(mx::maximum(span / constant(range.highest - range.lowest), constant(kSmallestScale)));
  const mx::array steps = mx::round((x - loaded(low)) / loaded(scale));
  const mx::array codes =
      mx::clip(steps + constant(range.lowest), constant(range.lowest), constant(range.highest));
  return {packed_key_codes(codes, bits), scale, low};
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
  const mx::array steps = codes - constant(KeyRange(codec.key_bits).lowest);
  return mx::astype(ungrouped(steps * loaded(planes[1]) + loaded(planes[2])), type);
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
