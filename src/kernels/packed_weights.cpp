#include "kernels/packed_weights.h"

#include <cstring>
#include <optional>

#include "base/error.h"
#include "kernels/half.h"
#include "kernels/packed_layout.h"

namespace godwit::kernels {
namespace {

using Byte = std::uint8_t;

float load_scale(ScaleType type, const Byte* bytes) {
  if (type == ScaleType::f16) return load_half(bytes);
  if (type == ScaleType::f32) {
    float value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  std::uint16_t half;
  std::memcpy(&half, bytes, sizeof half);
  return bf16_to_float(half);
}

constexpr std::int64_t kDenseStep = 2 * kPackedRows;  // bytes from one number of a dense row to the next

const Byte* dense_row(const PackedShape& shape, const std::byte* packed, std::int64_t row) {
  return reinterpret_cast<const Byte*>(packed) + row / kPackedRows * band_bytes(shape) +
         row % kPackedRows * 2;
}

// Twice the E2M1 number of a nibble.
constexpr int kDoubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Scales and minimums of group g (within its record) of row r.
void take_scales(const PackedFormat& format, const Layout& l, const Byte* record, int r, int g,
                 PackedGroup* out) {
  const auto plane = [&](int i) {
    return load_scale(format.scales, record + i * l.plane_bytes() + r * l.scale_bytes);
  };
  const Byte* bytes = record + l.halves * l.plane_bytes() + r;
  out->is_split = format.codes == PackedCodes::q6_k || format.codes == PackedCodes::q3_k ||
                  format.codes == PackedCodes::q2_k;
  out->has_minimum = l.halves == 2;
  out->minimums[0] = out->minimums[1] = 0.0f;
  if (format.codes == PackedCodes::mxfp4) {
    out->scales[0] = out->scales[1] = half_of_e8m0(record[r]);
    return;
  }
  const float d = plane(0);
  out->scales[0] = out->scales[1] = d;
  Byte packed[16];
  for (int i = 0; i < l.scale_planes; i++) packed[i] = bytes[i * 16];
  if (out->is_split)
    for (int h = 0; h < 2; h++) {
      const int at = 2 * g + h;
      if (format.codes == PackedCodes::q6_k)
        out->scales[h] = d * static_cast<float>(static_cast<std::int8_t>(packed[at]));
      if (format.codes == PackedCodes::q3_k) out->scales[h] = d * static_cast<float>(q3_scale(packed, at));
      if (format.codes != PackedCodes::q2_k) continue;
      out->scales[h] = d * static_cast<float>(packed[at] & 15);
      out->minimums[h] = plane(1) * static_cast<float>(packed[at] >> 4);
    }
  if (format.codes == PackedCodes::iq4_xs)
    out->scales[0] = out->scales[1] = d * static_cast<float>(iq4_xs_scale(packed, g));
  if (!out->has_minimum || out->is_split) return;
  if (l.scale_planes == 0) {
    out->minimums[0] = out->minimums[1] = -plane(1);
    return;
  }
  const ScaleMin pair = k_scale_min(packed, g);
  out->scales[0] = out->scales[1] = d * static_cast<float>(pair.scale);
  out->minimums[0] = out->minimums[1] = plane(1) * static_cast<float>(pair.min);
}

std::optional<PackedCodes> affine_codes(int bits) {
  for (const PackedCodes codes : {PackedCodes::affine2, PackedCodes::affine3, PackedCodes::affine4,
                                  PackedCodes::affine5, PackedCodes::affine6, PackedCodes::affine8})
    if (affine_bits({codes, 32, ScaleType::f16}) == bits) return codes;
  return std::nullopt;
}

}  // namespace

bool has_packed_affine(int bits, int group) {
  return affine_codes(bits).has_value() && (group == 32 || group == 64 || group == 128);
}

PackedFormat packed_affine(int bits, int group, ScaleType scales) {
  if (!has_packed_affine(bits, group))
    fail(ErrorCode::unsupported, "packed_weights", "affine {}-bit group {} has no packed layout", bits,
         group);
  return {*affine_codes(bits), group, scales};
}

PackedFormat packed_dense(ScaleType numbers) {
  if (numbers == ScaleType::f32)
    fail(ErrorCode::unsupported, "packed_weights", "f32 numbers have no packed layout");
  return {PackedCodes::dense, 32, numbers};
}

std::int64_t band_count(const PackedShape& shape) { return (shape.rows + kPackedRows - 1) / kPackedRows; }

std::int64_t band_bytes(const PackedShape& shape) {
  return shape.columns / shape.format.group * record_bytes(shape.format);
}

std::int64_t packed_bytes(const PackedShape& shape) { return band_count(shape) * band_bytes(shape); }

PackedGroup read_group(const PackedShape& shape, const std::byte* packed, std::int64_t row,
                       std::int64_t group) {
  const Layout layout = layout_of(shape.format);
  const int per_record = shape.format.group / 32, r = static_cast<int>(row % kPackedRows);
  const int g = static_cast<int>(group % per_record);
  const Byte* record = reinterpret_cast<const Byte*>(packed) + row / kPackedRows * band_bytes(shape) +
                       group / per_record * record_bytes(shape.format);
  PackedGroup out;
  out.offset = layout.offset;
  take_codes(layout, record + layout.head_bytes() + g * layout.group_bytes(), r, out.codes);
  if (shape.format.codes == PackedCodes::mxfp4)
    for (Byte& code : out.codes) code = static_cast<Byte>(layout.offset + kDoubled[code]);
  if (shape.format.codes == PackedCodes::iq4_nl || shape.format.codes == PackedCodes::iq4_xs)
    for (Byte& code : out.codes) code = static_cast<Byte>(layout.offset + kIq4Values[code]);
  take_scales(shape.format, layout, record, r, g, &out);
  return out;
}

void decode_values(const PackedGroup& group, float* values) {
  for (int k = 0; k < 32; k++)
    values[k] =
        group.scales[k / 16] * static_cast<float>(group.codes[k] - group.offset) - group.minimums[k / 16];
}

float read_dense(const PackedShape& shape, const std::byte* packed, std::int64_t row, std::int64_t column) {
  return load_scale(shape.format.scales, dense_row(shape, packed, row) + column * kDenseStep);
}

void dequant_packed_row(const PackedShape& shape, const std::byte* packed, std::int64_t row, float* out) {
  if (shape.format.codes == PackedCodes::dense) {
    const Byte* numbers = dense_row(shape, packed, row);
    for (std::int64_t k = 0; k < shape.columns; k++)
      out[k] = load_scale(shape.format.scales, numbers + k * kDenseStep);
    return;
  }
  for (std::int64_t g = 0; g < shape.columns / 32; g++)
    decode_values(read_group(shape, packed, row, g), out + g * 32);
}

}  // namespace godwit::kernels
