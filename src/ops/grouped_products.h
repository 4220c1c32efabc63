// Products of several matrices, each with rows of its own: what experts are made of.
#pragma once

#include <cstdint>
#include <span>

#include "ops/packed_matrix.h"

namespace godwit::ops {

struct RowsProduct {
  const PackedMatrix* matrix;
  kernels::Activations x;  // of its own rows
  std::int64_t rows;
  float* y;  // [rows, outputs], back to back
};

// y = x W^T for every product, shared out among the threads over all of them at once.
void multiply_each(NativeRuntime& runtime, std::span<const RowsProduct> products);

// Rows from `row` on of activations with n elements a row.
kernels::Activations rows_from(const kernels::Activations& x, std::int64_t row, std::int64_t n);

}  // namespace godwit::ops
