// A weight as the file holds it: a format tag plus planes, never widened in silence. nn decides how to
// multiply by it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/mx.h"
#include "checkpoint/tensor_format.h"
#include "ops/packed_matrix.h"

namespace godwit::checkpoint {

// How `data` is to be read. Logical shape is always [rows, columns] = [out, in] for matrices.
enum class WeightKind {
  dense,   // data: [..] in the file's dtype (f32, f16, bf16)
  affine,  // data: u32 [rows, columns * bits / 32], scales and biases [rows, columns / group]; w = q * scale
           // + bias
  mxfp4,   // data: u32 packed, scales u8 [rows, columns / 32]
  mxfp8,
  nvfp4,   // group 16
  blocks,  // data: u8 [rows, bytes per row], a GGUF block format without an MLX layout; `format` tells which
  packed,  // native mode: `packed` holds the blocks in the layout of our kernels, `data` is empty
};

struct Weight {
  WeightKind kind = WeightKind::dense;
  TensorFormat format = TensorFormat::f32;  // the format in the file
  int rows = 0;
  int columns = 0;
  int bits = 0;
  int group = 0;
  mx::array data;
  std::optional<mx::array> scales;
  std::optional<mx::array> biases;
  std::shared_ptr<const ops::PackedMatrix> packed = nullptr;

  bool quantized() const { return kind != WeightKind::dense; }
  // MLX's name of the quantization mode ("affine", "mxfp4", ...). Only for kinds that MLX multiplies itself.
  std::string mlx_mode() const;
  // The exact value of every element, [rows, columns] in `dtype` (graph node; nothing is evaluated).
  mx::array dequantize(mx::Dtype dtype) const;
  // A copy whose rows are taken in the order `order` (i32 [rows]); exact on every format because no group
  // crosses a row.
  Weight take_rows(const mx::array& order) const;
  // Rows [begin, end): splits fused projections without touching values.
  Weight slice_rows(int begin, int end) const;
};

}  // namespace godwit::checkpoint
