// Numbers into GGUF blocks, for weights that are quantized while they are loaded. The formulas are those of
// llama.cpp's quantize_row_q8_0_ref and quantize_row_q4_0_ref as the gguf package writes them down in NumPy, bit for bit.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "kernels/dequant_blocks.h"

namespace godwit::kernels {

// q8_0 and q4_0.
bool can_quantize(BlockFormat format);
std::string_view quantized_name(std::optional<BlockFormat> format);  // "Q8_0", "Q4_0"; empty for none and the others

// Reads block_count * elements from `values`, writes block_count * bytes to `blocks`. Returns how many blocks from the
// first one on are right: fewer than block_count where one holds a number that is not finite, or too large for a scale
// in f16. A format that can_quantize() denies is Error{unsupported}.
std::size_t quantize_blocks(BlockFormat format, const float* values, std::size_t block_count, std::byte* blocks);

}  // namespace godwit::kernels
