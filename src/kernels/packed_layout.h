// Where the parts of a packed record lie (packed_weights.h). Private to the files that pack and read back.
#pragma once

#include <cstdint>

#include "kernels/packed_weights.h"

namespace godwit::kernels {

// The codes of each 32 inputs follow the head of the record.
struct Layout {
  int halves;  // planes of scales at the front of the record: d, scales or exponents, then m, dmin or biases
  int scale_bytes;   // of one element of those
  int scale_planes;  // byte planes after them
  int high_bits;     // 0, 1 or 2 of each code in as many 64-byte lines in front of each group's low bits
  int low_bits;      // 2, 4 or 8 of each code in as many lines
  int offset;

  std::int64_t plane_bytes() const { return scale_bytes * kPackedRows; }
  std::int64_t head_bytes() const { return halves * plane_bytes() + scale_planes * kPackedRows; }
  std::int64_t group_bytes() const { return (high_bits + low_bits) * 64; }
};

int affine_bits(const PackedFormat& format);  // 0 unless it is affine
bool is_affine(const PackedFormat& format);
Layout layout_of(const PackedFormat& format);
std::int64_t record_bytes(const PackedFormat& format);
// Throws Error{invalid_argument} where the format's group does not divide the columns.
void check_columns(const PackedShape& shape);

// Puts the 32 codes of row r, unsigned numbers, into a group's lines, which start out as zeros; and back.
void place_codes(const Layout& layout, const std::uint8_t* codes, int r, std::uint8_t* lines);
void take_codes(const Layout& layout, const std::uint8_t* lines, int r, std::uint8_t* codes);

}  // namespace godwit::kernels
