// GGUF blocks to the planes MLX multiplies by itself, without rounding anything: the scale and bias of each
// group of 32 become f32, which hold the products of the file's f16 and 6-bit scales exactly.
#pragma once

#include "checkpoint/tensor_entry.h"
#include "checkpoint/weight.h"
#include "kernels/dequant_blocks.h"

namespace godwit::checkpoint {

bool is_float(TensorFormat format);  // F32, F16 and BF16
// True for the formats above plain ones.
bool is_block_format(TensorFormat format);
kernels::BlockFormat block_format(TensorFormat format);

// A block tensor [..., columns] as a Weight with rows = product of the leading dimensions:
//   Q4_0 Q4_1 Q4_K -> affine 4, Q5_0 Q5_1 Q5_K -> affine 5, Q8_0 -> affine 8, all group 32 with f32 scales
//   and biases; MXFP4 -> mxfp4; the others stay blocks.
Weight load_blocks(const TensorEntry& entry);

}  // namespace godwit::checkpoint
