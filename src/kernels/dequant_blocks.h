// Decoders of GGUF block formats into f32, the definition that every repacked form and faster path is
// measured against. Blocks lie back to back as in the file (little-endian, no padding between them); layouts
// are in docs/formats.md. Each value is one fixed sequence of f32 operations: scale products first, then the
// quantized value, then the minimum.
#pragma once

#include <cstddef>

namespace godwit::kernels {

enum class BlockFormat { q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl, iq4_xs, mxfp4 };

struct BlockSize {
  int elements;
  int bytes;
};

BlockSize block_size(BlockFormat format);

// Reads block_count * bytes from `blocks` (any alignment), writes block_count * elements to `out`.
void dequant_blocks(BlockFormat format, const std::byte* blocks, std::size_t block_count, float* out);

// The 6-bit scale and minimum of group `group` (0..7) in the 12 packed bytes of Q4_K and Q5_K.
struct ScaleMin {
  int scale, min;
};
ScaleMin k_scale_min(const unsigned char* packed, int group);

// The 6-bit scale of group `group` (0..15) in the 12 packed bytes of Q3_K, without its offset of 32.
int q3_scale(const unsigned char* packed, int group);

// The 6-bit scale of group `group` (0..7) in the 6 bytes of IQ4_XS behind d, without its offset of 32.
int iq4_xs_scale(const unsigned char* packed, int group);

// Half of the scale that a byte of MXFP4 stands for, 2^(e - 128): finite for e = 255, subnormal for e < 2.
float half_of_e8m0(unsigned char e);

// The 16 values an IQ4 code stands for.
extern const signed char kIq4Values[16];

}  // namespace godwit::kernels
