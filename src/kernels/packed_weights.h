// Weight matrices in the layout of the quantized matmul: the bits of the file's blocks or planes, reordered
// so that sixteen output rows lie side by side. Nothing is widened: sixteen packed rows take exactly the
// bytes of sixteen rows of the file. One layout serves every CPU level, so packed files move between
// machines.
//
// A matrix [N, K] is cut into bands of 16 rows (the last one padded with zero rows), a band into records
// along K:
//   Q8_0  32 inputs: d f16[16] · codes 8 x 64 bytes
//   Q5_0  32 inputs: d f16[16] · fifth bits 64 bytes · nibbles 4 x 64 bytes
//   Q5_1  32 inputs: d f16[16] · m f16[16] · fifth bits 64 bytes · nibbles
//   Q4_0  32 inputs: d f16[16] · nibbles
//   Q4_1  32 inputs: d f16[16] · m f16[16] · nibbles
//   Q4_K  256 inputs: d f16[16] · dmin f16[16] · the 12 bytes of 6-bit scales, each as 16 bytes · 8 groups of
//         nibbles
//   Q5_K  256 inputs: the head of Q4_K · 8 groups of (fifth bits 64 bytes · nibbles)
//   Q6_K  256 inputs: d f16[16] · 16 scales, each as int8[16] · 8 groups of (2-bit parts 2 x 64
//         bytes · nibbles)
//   Q3_K  256 inputs: d f16[16] · the 12 bytes of 6-bit scales, each as 16 bytes · 8 groups of (third bits 64
//         bytes · 2-bit parts)
//   Q2_K  256 inputs: d f16[16] · dmin f16[16] · 16 scales and minimums of 4 bits, each pair as 16 bytes · 8
//         groups of 2-bit parts
//   IQ4_NL  32 inputs: d f16[16] · nibbles: of a table of sixteen integers
//   IQ4_XS  256 inputs: d f16[16] · the 6 bytes of 6-bit scales, each as 16 bytes · 8 groups of nibbles
//   MXFP4  32 inputs: exponents E8M0 [16] · nibbles: E2M1, that is twice its value in a table of integers
//   affine 2, 3, 4, 5, 6, 8 (MLX)  a group of 32, 64 or 128 inputs: scales [16] · biases [16], both f16, bf16
//         or f32 as in the file · for each 32 inputs 2-bit parts · third bits, 2-bit parts · nibbles · fifth
//         bits, nibbles · 2-bit parts of the top, nibbles · codes
//   dense 32 inputs: for each of them its numbers f16[16] or bf16[16]
// Within 32 inputs, step b (0..7) holds inputs 4b..4b+3: byte 4r + j of its 64 bytes is row r, input 4b + j.
// Codes of 8 bits: step b is line b, as int8 (affine 8: code - 128). Nibbles: step b is the low (b even) or
// high (b odd) half of line b/2. Third or fifth bits: bit b of byte 4r + j. 2-bit parts: bits 2(b%4) of byte
// 4r + j in line b/4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/dequant_blocks.h"

namespace godwit::kernels {

inline constexpr std::int64_t kPackedRows = 16;

enum class PackedCodes {
  q8_0,
  q5_0,
  q5_1,
  q4_0,
  q4_1,
  q4_k,
  q5_k,
  q6_k,
  q3_k,
  q2_k,
  iq4_nl,
  iq4_xs,
  mxfp4,
  affine2,
  affine3,
  affine4,
  affine5,
  affine6,
  affine8,
  dense
};
enum class ScaleType { f16, bf16, f32 };

struct PackedFormat {
  PackedCodes codes;
  int group;         // inputs of a record: 32 or 256, affine as many as share a scale
  ScaleType scales;  // f16 unless affine (not read of MXFP4); of a dense matrix the type of its numbers

  bool operator==(const PackedFormat&) const = default;
};

// Raise it with any change of the layouts above: packed files of another version are not read.
inline constexpr int kPackedVersion = 1;

// "q4_k:256:f16", "affine4:64:bf16": what packed files call it.
std::string name_of(const PackedFormat& format);

bool has_packed_layout(BlockFormat format);
// Throws Error{unsupported} for a format without a layout.
PackedFormat packed_format(BlockFormat format);

// MLX's affine quantization: value = code * scale + bias, a scale and a bias for each `group` inputs of a
// row.
bool has_packed_affine(int bits, int group);
// Throws Error{unsupported} for bits or groups without a layout.
PackedFormat packed_affine(int bits, int group, ScaleType scales);

// Numbers of 16 bits as they are. Throws Error{unsupported} for f32.
PackedFormat packed_dense(ScaleType numbers);

struct PackedShape {
  PackedFormat format;
  std::int64_t rows;     // N
  std::int64_t columns;  // K, a multiple of format.group
};

std::int64_t band_count(const PackedShape& shape);
// Bytes of one band, and of the whole matrix (bands without padding between them).
std::int64_t band_bytes(const PackedShape& shape);
std::int64_t packed_bytes(const PackedShape& shape);

// Packs bands [band_begin, band_end) of `rows` (N rows of GGUF blocks or dense numbers, back to back as in
// the file) into `packed`, which points at the whole matrix: bands may be packed by several threads. Throws
// Error{invalid_argument} for an affine format or a K that the format's group does not divide.
void pack_bands(const PackedShape& shape, const std::byte* rows, std::byte* packed, std::int64_t band_begin,
                std::int64_t band_end);

// The planes of an affine matrix as the file holds them, rows back to back; no alignment is asked for. Or
// those of MLX's mxfp4: nibbles, a byte of exponent for each 32 of them, and no biases.
struct AffinePlanes {
  const std::byte* codes;   // [N, K] of `bits` bits, input 0 in the lowest bits of the first byte
  const std::byte* scales;  // [N, K / group]
  const std::byte* biases;
};
// The same for these. Throws Error{invalid_argument} for a format that has no planes or a K that its group
// does not divide.
void pack_affine_bands(const PackedShape& shape, const AffinePlanes& planes, std::byte* packed,
                       std::int64_t band_begin, std::int64_t band_end);

// One group of 32 inputs of one row, read back: value = scale[k/16] * (code[k] - offset) - minimum, where
// scale is already a product of the format's scales in f32 and minimum is 0 unless the format has one (Q4_1,
// Q5_1 and affine store its negative), minimum[k/16]. Part of the definition of the matmul. A dense matrix
// has none.
struct PackedGroup {
  // Of Q8_0: the int8 pattern with its top bit flipped (offset 128). Of IQ4 and MXFP4 what the nibble stands
  // for, plus the offset.
  std::uint8_t codes[32];
  int offset;
  bool is_split;  // the halves of 16 have scales and minimums of their own
  float scales[2];
  bool has_minimum;
  float minimums[2];
};
PackedGroup read_group(const PackedShape& shape, const std::byte* packed, std::int64_t row,
                       std::int64_t group);
// Its 32 values, each operation rounded to f32.
void decode_values(const PackedGroup& group, float* values);

// One number of a dense matrix, exact.
float read_dense(const PackedShape& shape, const std::byte* packed, std::int64_t row, std::int64_t column);

// Row `row` as f32, equal bit for bit to decoding its GGUF blocks, or to code * scale + bias with both
// operations rounded to f32: an embedding look-up on the packed matrix.
void dequant_packed_row(const PackedShape& shape, const std::byte* packed, std::int64_t row, float* out);

}  // namespace godwit::kernels
