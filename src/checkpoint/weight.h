// A weight as the file holds it: a format tag plus planes, never widened in silence. nn decides how to
// multiply by it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mx.h"
#include "checkpoint/tensor_format.h"
#include "ops/packed_matrix.h"

namespace godwit::checkpoint {

// How `data` is to be read. Logical shape is always [rows, columns] = [out, in] for matrices; the matrices of
// a group of experts lie behind each other, so that every plane has their number as its first axis.
enum class WeightKind {
  dense,   // data: [..] in the file's dtype (f32, f16, bf16)
  affine,  // data: u32 [rows, columns * bits / 32], scales and biases [rows, columns / group]; w = q * scale
           // + bias
  mxfp4,   // data: u32 packed, scales u8 [rows, columns / 32]
  mxfp8,
  nvfp4,   // group 16
  blocks,  // data: u8 [rows, bytes per row], a GGUF block format without an MLX layout; `format` tells which
  packed,  // native mode: `packed`, or of experts `packed_experts`, holds the blocks in the layout of our kernels,
           // `data` is empty
};

struct Weight {
  WeightKind kind = WeightKind::dense;
  TensorFormat format = TensorFormat::f32;  // the format in the file
  int rows = 0;
  int columns = 0;
  int experts = 0;  // 0: one matrix, without that axis
  int bits = 0;
  int group = 0;
  mx::array data;
  std::optional<mx::array> scales;
  std::optional<mx::array> biases;
  std::shared_ptr<const ops::PackedMatrix> packed = nullptr;
  std::vector<std::shared_ptr<const ops::PackedMatrix>> packed_experts = {};  // one an expert, of one format

  bool quantized() const { return kind != WeightKind::dense; }
  // MLX's name of the quantization mode ("affine", "mxfp4", ...). Only for kinds that MLX multiplies itself.
  std::string mlx_mode() const;
  // The exact value of every element, [rows, columns] or [experts, rows, columns] in `dtype` (graph node;
  // nothing is evaluated).
  mx::array dequantize(mx::Dtype dtype) const;
  // A copy whose rows are taken in the order `order` (i32 [rows]); exact on every format because no group
  // crosses a row.
  Weight take_rows(const mx::array& order) const;
  // Rows [begin, end), of every expert: splits fused projections without touching values.
  Weight slice_rows(int begin, int end) const;
  // The matrices of these experts (i32 or u32 [n], repeats allowed): a weight of n experts.
  Weight take_experts(const mx::array& indices) const;
  // Columns in the order of `heads`, each `width` wide: column c of the result is column heads[c / width] *
  // width + c % width. Exact: quantized planes move whole groups where `width` holds whole groups, and become
  // dense f32 otherwise, as blocks without an MLX layout always do.
  Weight take_column_heads(const mx::array& heads, int width) const;
  // Evaluates every plane, so that no lazy array leaves the loader.
  void evaluate() const;
};

}  // namespace godwit::checkpoint
