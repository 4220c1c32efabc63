// GGUF blocks and dense numbers into the packed layout.
#include <cstring>

#include "base/error.h"
#include "kernels/packed_layout.h"

namespace godwit::kernels {
namespace {

using Byte = std::uint8_t;

struct Named {
  BlockFormat blocks;
  PackedCodes codes;
};
constexpr Named kFormats[] = {
    {BlockFormat::q8_0, PackedCodes::q8_0},     {BlockFormat::q5_0, PackedCodes::q5_0},
    {BlockFormat::q5_1, PackedCodes::q5_1},     {BlockFormat::q4_0, PackedCodes::q4_0},
    {BlockFormat::q4_1, PackedCodes::q4_1},     {BlockFormat::q4_k, PackedCodes::q4_k},
    {BlockFormat::q5_k, PackedCodes::q5_k},     {BlockFormat::q6_k, PackedCodes::q6_k},
    {BlockFormat::q3_k, PackedCodes::q3_k},     {BlockFormat::q2_k, PackedCodes::q2_k},
    {BlockFormat::iq4_nl, PackedCodes::iq4_nl}, {BlockFormat::iq4_xs, PackedCodes::iq4_xs},
    {BlockFormat::mxfp4, PackedCodes::mxfp4},
};

// Four bits and, with `high`, a fifth of each: the order of the formats of 32 elements.
void codes_of_32(const Byte* low, const Byte* high, Byte* codes) {
  for (int k = 0; k < 16; k++) {
    codes[k] = low[k] & 15;
    codes[16 + k] = low[k] >> 4;
  }
  if (high == nullptr) return;
  for (int k = 0; k < 32; k += 4) {  // bit i of a nibble times this constant lands in bit 8i
    const std::uint32_t nibble = high[k / 8] >> k % 8 & 15u;
    std::uint32_t four;
    std::memcpy(&four, codes + k, sizeof four);
    four |= (nibble * 0x00204081u & 0x01010101u) << 4;
    std::memcpy(codes + k, &four, sizeof four);
  }
}

// The 32 codes of group `group` of a GGUF block as unsigned numbers (Q8_0: top bit flipped).
void codes_of_block(PackedCodes format, const Byte* block, int group, Byte* codes) {
  switch (format) {
    case PackedCodes::q8_0:
      for (int k = 0; k < 32; k++) codes[k] = block[2 + k] ^ 0x80;
      return;
    case PackedCodes::mxfp4:
      return codes_of_32(block + 1, nullptr, codes);
    case PackedCodes::iq4_xs:
      return codes_of_32(block + 8 + group * 16, nullptr, codes);
    case PackedCodes::iq4_nl:
    case PackedCodes::q4_0:
      return codes_of_32(block + 2, nullptr, codes);
    case PackedCodes::q4_1:
      return codes_of_32(block + 4, nullptr, codes);
    case PackedCodes::q5_0:
      return codes_of_32(block + 6, block + 2, codes);
    case PackedCodes::q5_1:
      return codes_of_32(block + 8, block + 4, codes);
    case PackedCodes::q4_k: {
      const Byte* low = block + 16 + group / 2 * 32;
      for (int k = 0; k < 32; k++) codes[k] = static_cast<Byte>(low[k] >> group % 2 * 4 & 15);
      return;
    }
    case PackedCodes::q5_k: {
      const Byte* low = block + 48 + group / 2 * 32;
      for (int k = 0; k < 32; k++)
        codes[k] = static_cast<Byte>((low[k] >> group % 2 * 4 & 15) | (block[16 + k] >> group & 1) << 4);
      return;
    }
    case PackedCodes::q6_k: {  // half h of 128 inputs, quarter c: nibbles c/2 of 64 bytes, 2-bit parts at 2c
      const int half = group / 4, quarter = group % 4;
      const Byte* low = block + half * 64 + quarter % 2 * 32;
      const Byte* high = block + 128 + half * 32;
      for (int k = 0; k < 32; k++)
        codes[k] = static_cast<Byte>((low[k] >> quarter / 2 * 4 & 15) | (high[k] >> quarter * 2 & 3) << 4);
      return;
    }
    case PackedCodes::q3_k:
    case PackedCodes::q2_k: {  // half h of 128 inputs, quarter c: 2-bit parts at 2c of 32 bytes
      const bool has_third = format == PackedCodes::q3_k;
      const Byte* low = block + (has_third ? 32 : 16) + group / 4 * 32;
      for (int k = 0; k < 32; k++) {
        const int third = has_third ? block[k] >> group & 1 : 0;
        codes[k] = static_cast<Byte>((low[k] >> group % 4 * 2 & 3) | third << 2);
      }
      return;
    }
    default:
      return;  // not packed by blocks
  }
}

// Where a GGUF block keeps what a record's head holds: the planes of halves at halves[i], the scale bytes at
// `scales`.
struct BlockHead {
  int halves[2];
  int scales;
};
BlockHead head_of_block(PackedCodes format) {
  if (format == PackedCodes::q6_k) return {{208, 0}, 192};
  if (format == PackedCodes::q3_k) return {{108, 0}, 96};
  if (format == PackedCodes::q2_k) return {{80, 82}, 0};
  if (format == PackedCodes::iq4_xs) return {{0, 0}, 2};
  return {{0, 2}, 4};
}

void pack_numbers(const Byte* numbers, int r, Byte* record) {
  for (int k = 0; k < 32; k++) std::memcpy(record + (k * kPackedRows + r) * 2, numbers + k * 2, 2);
}

void pack_block(const PackedFormat& format, const Layout& l, const Byte* block, int r, Byte* record) {
  if (format.codes == PackedCodes::dense) return pack_numbers(block, r, record);
  const BlockHead head = head_of_block(format.codes);
  for (int i = 0; i < l.halves; i++)
    std::memcpy(record + i * l.plane_bytes() + r * l.scale_bytes, block + head.halves[i],
                static_cast<std::size_t>(l.scale_bytes));
  Byte* bytes = record + l.halves * l.plane_bytes() + r;
  for (int i = 0; i < l.scale_planes; i++) bytes[i * kPackedRows] = block[head.scales + i];
  for (int g = 0; g < format.group / 32; g++) {
    Byte codes[32];
    codes_of_block(format.codes, block, g, codes);
    place_codes(l, codes, r, record + l.head_bytes() + g * l.group_bytes());
  }
}

}  // namespace

bool has_packed_layout(BlockFormat format) {
  for (const Named& named : kFormats)
    if (named.blocks == format) return true;
  return false;
}

PackedFormat packed_format(BlockFormat format) {
  for (const Named& named : kFormats)
    if (named.blocks == format) return {named.codes, block_size(format).elements, ScaleType::f16};
  fail(ErrorCode::unsupported, "packed_weights", "format {} has no packed layout", static_cast<int>(format));
}

void pack_bands(const PackedShape& shape, const std::byte* rows, std::byte* packed, std::int64_t band_begin,
                std::int64_t band_end) {
  if (is_affine(shape.format))
    fail(ErrorCode::invalid_argument, "packed_weights", "an affine matrix has no blocks");
  check_columns(shape);
  const Layout layout = layout_of(shape.format);
  const std::int64_t record = record_bytes(shape.format), block = record / kPackedRows;
  const std::int64_t blocks = shape.columns / shape.format.group;
  for (std::int64_t band = band_begin; band < band_end; band++) {
    Byte* records = reinterpret_cast<Byte*>(packed) + band * band_bytes(shape);
    std::memset(records, 0, static_cast<std::size_t>(band_bytes(shape)));
    for (int r = 0; r < kPackedRows && band * kPackedRows + r < shape.rows; r++) {
      const Byte* row = reinterpret_cast<const Byte*>(rows) + (band * kPackedRows + r) * blocks * block;
      for (std::int64_t b = 0; b < blocks; b++)
        pack_block(shape.format, layout, row + b * block, r, records + b * record);
    }
  }
}

}  // namespace godwit::kernels
