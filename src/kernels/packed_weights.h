// Weight matrices in the layout of the quantized matmul: the bits of the GGUF blocks, reordered so that
// sixteen output rows lie side by side. Nothing is widened: sixteen packed rows take exactly the bytes of
// sixteen GGUF rows. One layout serves every CPU level, so packed files move between machines.
//
// A matrix [N, K] is cut into bands of 16 rows (the last one padded with zero rows), a band into records
// along K:
//   Q8_0  32 inputs: d f16[16] · codes 8 x 64 bytes
//   Q5_0  32 inputs: d f16[16] · fifth bits 64 bytes · nibbles 4 x 64 bytes
//   Q4_0  32 inputs: d f16[16] · nibbles
//   Q4_1  32 inputs: d f16[16] · m f16[16] · nibbles
//   Q4_K  256 inputs: d f16[16] · dmin f16[16] · the 12 bytes of 6-bit scales, each as 16 bytes · nibbles x 8
//   groups Q6_K  256 inputs: d f16[16] · 16 scales, each as int8[16] · (2-bit parts 2 x 64 bytes · nibbles) x
//   8 groups
// Within a group of 32 inputs, step b (0..7) holds inputs 4b..4b+3: byte 4r + j of its 64 bytes is row r,
// input 4b + j. Codes of 8 bits: step b is line b. Nibbles: step b is the low (b even) or high (b odd) half
// of line b/2. Fifth bits: bit b of byte 4r + j. 2-bit parts: bits 2(b%4) of byte 4r + j in line b/4.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/dequant_blocks.h"

namespace godwit::kernels {

inline constexpr std::int64_t kPackedRows = 16;

bool has_packed_layout(BlockFormat format);

struct PackedShape {
  BlockFormat format;
  std::int64_t rows;     // N
  std::int64_t columns;  // K, a multiple of the format's block
};

std::int64_t band_count(const PackedShape& shape);
// Bytes of one band, and of the whole matrix (bands without padding between them).
std::int64_t band_bytes(const PackedShape& shape);
std::int64_t packed_bytes(const PackedShape& shape);

// Packs bands [band_begin, band_end) of `gguf` (N rows back to back as in the file) into `packed`, which
// points at the whole matrix: bands may be packed by several threads. Throws Error{unsupported} for a format
// without a layout and Error{invalid_argument} for a K that its blocks do not divide.
void pack_bands(const PackedShape& shape, const std::byte* gguf, std::byte* packed, std::int64_t band_begin,
                std::int64_t band_end);

// One group of 32 inputs of one row, read back: value = scale[k/16] * (code[k] - offset) - minimum, where
// scale is already a product of the format's scales in f32 and minimum is 0 unless the format has one (Q4_1
// stores its negative). Part of the definition of the matmul.
struct PackedGroup {
  std::uint8_t codes[32];  // of Q8_0: the int8 pattern with its top bit flipped (offset 128)
  int offset;
  float scales[2];
  float minimum;
};
PackedGroup read_group(const PackedShape& shape, const std::byte* packed, std::int64_t row,
                       std::int64_t group);

// Row `row` as f32, equal bit for bit to decoding its GGUF blocks: an embedding look-up on the packed matrix.
void dequant_packed_row(const PackedShape& shape, const std::byte* packed, std::int64_t row, float* out);

}  // namespace godwit::kernels
