// Block-quantized bytes to floats as a node of an MLX graph: memory holds the compact form, each use decodes
// it.
#pragma once

#include <memory>

#include "base/mx.h"
#include "kernels/dequant_blocks.h"
#include "ops/packed_matrix.h"

namespace godwit::ops {

// blocks u8 [..., bytes per row] -> [..., elements per row] in `dtype` (f32, f16 or bf16; decoded in f32,
// then rounded once). Runs on the CPU whatever the default device. Throws Error{internal} when the bytes are
// no whole blocks.
mx::array dequantize(const mx::array& blocks, kernels::BlockFormat format, mx::Dtype dtype);
// [rows, columns] f32 of a packed matrix, the values that a product with it is defined by; on the CPU as well.
mx::array dequantize(std::shared_ptr<const PackedMatrix> matrix);

}  // namespace godwit::ops
