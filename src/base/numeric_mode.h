// Which arithmetic a model runs with (docs/architecture.md, "Two numeric modes").
#pragma once

namespace godwit {

enum class NumericMode {
  reference,  // op for op what mlx-lm does on MLX's own ops, one row at a time: bits equal to that oracle
  native,     // our kernels: the same bytes whatever the batch, chunking or thread count
};

}  // namespace godwit
