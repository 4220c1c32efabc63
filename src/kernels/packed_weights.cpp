#include "kernels/packed_weights.h"

#include <cstring>

#include "base/error.h"
#include "kernels/dequant_half.h"

namespace godwit::kernels {
namespace {

using Byte = std::uint8_t;

// Where the parts of a record lie. A record covers `groups` groups of 32 inputs; each group's codes follow
// the head.
struct Layout {
  int halves;        // f16 planes at the front of the record: d, then m or dmin
  int scale_planes;  // byte planes after them
  int bit_lines;     // 64-byte lines of high bits in front of each group's low bits
  int high_bits;     // 0, 1 or 2 bits of each code in those lines
  int low_lines;     // 4: nibbles, 8: whole codes
  int offset;
};

Layout layout_of(BlockFormat format) {
  switch (format) {
    case BlockFormat::q8_0:
      return {1, 0, 0, 0, 8, 128};
    case BlockFormat::q5_0:
      return {1, 0, 1, 1, 4, 16};
    case BlockFormat::q4_0:
      return {1, 0, 0, 0, 4, 8};
    case BlockFormat::q4_1:
      return {2, 0, 0, 0, 4, 0};
    case BlockFormat::q4_k:
      return {2, 12, 0, 0, 4, 0};
    case BlockFormat::q6_k:
      return {1, 16, 2, 2, 4, 32};
    default:
      fail(ErrorCode::unsupported, "packed_weights", "format {} has no packed layout",
           static_cast<int>(format));
  }
}

std::int64_t head_bytes(const Layout& l) { return l.halves * 32 + l.scale_planes * 16; }
std::int64_t group_bytes(const Layout& l) { return (l.bit_lines + l.low_lines) * 64; }

std::int64_t record_bytes(BlockFormat format) { return block_size(format).bytes * kPackedRows; }

// The 32 codes of group `group` of a GGUF block as unsigned numbers (Q8_0: top bit flipped).
void codes_of_block(BlockFormat format, const Byte* block, int group, Byte* codes) {
  switch (format) {
    case BlockFormat::q8_0:
      for (int k = 0; k < 32; k++) codes[k] = block[2 + k] ^ 0x80;
      return;
    case BlockFormat::q4_0:
    case BlockFormat::q4_1:
    case BlockFormat::q5_0: {
      const Byte* low = block + (format == BlockFormat::q4_0 ? 2 : format == BlockFormat::q4_1 ? 4 : 6);
      for (int k = 0; k < 16; k++) {
        codes[k] = low[k] & 15;
        codes[16 + k] = low[k] >> 4;
      }
      if (format == BlockFormat::q5_0)
        for (int k = 0; k < 32; k++)
          codes[k] = static_cast<Byte>(codes[k] | (block[2 + k / 8] >> k % 8 & 1) << 4);
      return;
    }
    case BlockFormat::q4_k: {
      const Byte* low = block + 16 + group / 2 * 32;
      for (int k = 0; k < 32; k++) codes[k] = static_cast<Byte>(low[k] >> group % 2 * 4 & 15);
      return;
    }
    case BlockFormat::q6_k: {  // half h of 128 inputs, quarter c: nibbles c/2 of 64 bytes, 2-bit parts at 2c
      const int half = group / 4, quarter = group % 4;
      const Byte* low = block + half * 64 + quarter % 2 * 32;
      const Byte* high = block + 128 + half * 32;
      for (int k = 0; k < 32; k++)
        codes[k] = static_cast<Byte>((low[k] >> quarter / 2 * 4 & 15) | (high[k] >> quarter * 2 & 3) << 4);
      return;
    }
    default:
      return;  // layout_of() has refused it
  }
}

// Puts `codes` of row r into a group's lines, which start out as zeros.
void place_codes(const Layout& l, const Byte* codes, int r, Byte* lines) {
  Byte* low = lines + l.bit_lines * 64;
  for (int k = 0; k < 32; k++) {
    const int step = k / 4, lane = 4 * r + k % 4;
    if (l.low_lines == 8) {
      low[step * 64 + lane] = codes[k] ^ 0x80;  // back to the int8 pattern
      continue;
    }
    Byte& nibbles = low[step / 2 * 64 + lane];
    nibbles = static_cast<Byte>(nibbles | (codes[k] & 15) << step % 2 * 4);
    if (l.high_bits == 0) continue;
    const int per_byte = 8 / l.high_bits;
    Byte& bits = lines[step / per_byte * 64 + lane];
    bits = static_cast<Byte>(bits | codes[k] >> 4 << step % per_byte * l.high_bits);
  }
}

void take_codes(const Layout& l, const Byte* lines, int r, Byte* codes) {
  const Byte* low = lines + l.bit_lines * 64;
  for (int k = 0; k < 32; k++) {
    const int step = k / 4, lane = 4 * r + k % 4;
    if (l.low_lines == 8) {
      codes[k] = low[step * 64 + lane] ^ 0x80;
      continue;
    }
    codes[k] = low[step / 2 * 64 + lane] >> step % 2 * 4 & 15;
    if (l.high_bits == 0) continue;
    const int per_byte = 8 / l.high_bits, mask = (1 << l.high_bits) - 1;
    const int high = lines[step / per_byte * 64 + lane] >> step % per_byte * l.high_bits & mask;
    codes[k] = static_cast<Byte>(codes[k] | high << 4);
  }
}

// Where a GGUF block keeps what a record's head holds: the f16 planes at halves[i], the scale bytes at
// `scales`.
struct BlockHead {
  int halves[2];
  int scales;
};
BlockHead head_of_block(BlockFormat format) {
  if (format == BlockFormat::q6_k) return {{208, 0}, 192};
  return {{0, 2}, 4};
}

void pack_block(BlockFormat format, const Layout& l, const Byte* block, int r, Byte* record) {
  const BlockHead head = head_of_block(format);
  for (int i = 0; i < l.halves; i++) std::memcpy(record + i * 32 + r * 2, block + head.halves[i], 2);
  for (int i = 0; i < l.scale_planes; i++) record[l.halves * 32 + i * 16 + r] = block[head.scales + i];
  const int groups = block_size(format).elements / 32;
  for (int g = 0; g < groups; g++) {
    Byte codes[32];
    codes_of_block(format, block, g, codes);
    place_codes(l, codes, r, record + head_bytes(l) + g * group_bytes(l));
  }
}

// scale[k/16] and minimum of group g (within its record) of row r.
void take_scales(BlockFormat format, const Layout& l, const Byte* record, int r, int g, PackedGroup* out) {
  const float d = load_half(record + r * 2);
  const Byte* planes = record + l.halves * 32 + r;
  out->scales[0] = out->scales[1] = d;
  out->minimum = 0.0f;
  if (format == BlockFormat::q4_1) out->minimum = -load_half(record + 32 + r * 2);
  if (format == BlockFormat::q6_k)
    for (int h = 0; h < 2; h++)
      out->scales[h] = d * static_cast<float>(static_cast<std::int8_t>(planes[(2 * g + h) * 16]));
  if (format != BlockFormat::q4_k) return;
  Byte packed[12];
  for (int i = 0; i < 12; i++) packed[i] = planes[i * 16];
  const ScaleMin pair = k_scale_min(packed, g);
  out->scales[0] = out->scales[1] = d * static_cast<float>(pair.scale);
  out->minimum = load_half(record + 32 + r * 2) * static_cast<float>(pair.min);
}

const Byte* bytes_of(const std::byte* p) { return reinterpret_cast<const Byte*>(p); }

}  // namespace

bool has_packed_layout(BlockFormat format) {
  switch (format) {
    case BlockFormat::q8_0:
    case BlockFormat::q5_0:
    case BlockFormat::q4_0:
    case BlockFormat::q4_1:
    case BlockFormat::q4_k:
    case BlockFormat::q6_k:
      return true;
    default:
      return false;
  }
}

std::int64_t band_count(const PackedShape& shape) { return (shape.rows + kPackedRows - 1) / kPackedRows; }

std::int64_t band_bytes(const PackedShape& shape) {
  return shape.columns / block_size(shape.format).elements * record_bytes(shape.format);
}

std::int64_t packed_bytes(const PackedShape& shape) { return band_count(shape) * band_bytes(shape); }

void pack_bands(const PackedShape& shape, const std::byte* gguf, std::byte* packed, std::int64_t band_begin,
                std::int64_t band_end) {
  const Layout layout = layout_of(shape.format);
  const BlockSize block = block_size(shape.format);
  if (shape.columns % block.elements != 0)
    fail(ErrorCode::invalid_argument, "packed_weights", "{} columns are no multiple of {}", shape.columns,
         block.elements);
  const std::int64_t blocks = shape.columns / block.elements;
  for (std::int64_t band = band_begin; band < band_end; band++) {
    Byte* records = reinterpret_cast<Byte*>(packed) + band * band_bytes(shape);
    std::memset(records, 0, static_cast<std::size_t>(band_bytes(shape)));
    for (int r = 0; r < kPackedRows && band * kPackedRows + r < shape.rows; r++) {
      const Byte* row = bytes_of(gguf) + (band * kPackedRows + r) * blocks * block.bytes;
      for (std::int64_t b = 0; b < blocks; b++)
        pack_block(shape.format, layout, row + b * block.bytes, r, records + b * record_bytes(shape.format));
    }
  }
}

PackedGroup read_group(const PackedShape& shape, const std::byte* packed, std::int64_t row,
                       std::int64_t group) {
  const Layout layout = layout_of(shape.format);
  const int per_record = block_size(shape.format).elements / 32, r = static_cast<int>(row % kPackedRows);
  const int g = static_cast<int>(group % per_record);
  const Byte* record = bytes_of(packed) + row / kPackedRows * band_bytes(shape) +
                       group / per_record * record_bytes(shape.format);
  PackedGroup out;
  out.offset = layout.offset;
  take_codes(layout, record + head_bytes(layout) + g * group_bytes(layout), r, out.codes);
  take_scales(shape.format, layout, record, r, g, &out);
  return out;
}

void dequant_packed_row(const PackedShape& shape, const std::byte* packed, std::int64_t row, float* out) {
  for (std::int64_t g = 0; g < shape.columns / 32; g++) {
    const PackedGroup group = read_group(shape, packed, row, g);
    for (int k = 0; k < 32; k++)
      out[g * 32 + k] =
          group.scales[k / 16] * static_cast<float>(group.codes[k] - group.offset) - group.minimum;
  }
}

}  // namespace godwit::kernels
