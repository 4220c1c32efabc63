#include "ops/grouped_products.h"

#include <algorithm>

namespace godwit::ops {
namespace {

// As in packed_matrix.cpp: a single row walks four bands at once.
constexpr std::int64_t kBandsTogether = 4;

std::int64_t units_of(const RowsProduct& product) {
  return (kernels::band_count(product.matrix->shape()) + kBandsTogether - 1) / kBandsTogether;
}

// Units [begin, end) of one product.
void multiply_units(const NativeRuntime& runtime, const RowsProduct& product, std::int64_t begin,
                    std::int64_t end) {
  const kernels::PackedShape& shape = product.matrix->shape();
  runtime.kernels.quant_matmul({.shape = shape,
                                .packed = product.matrix->data(),
                                .x = product.x,
                                .y = product.y,
                                .y_stride = shape.rows,
                                .m_begin = 0,
                                .m_end = product.rows,
                                .band_begin = begin * kBandsTogether,
                                .band_end = std::min(end * kBandsTogether, kernels::band_count(shape)),
                                .accumulate = false});
}

}  // namespace

void multiply_each(NativeRuntime& runtime, std::span<const RowsProduct> products) {
  std::int64_t units = 0;
  for (const RowsProduct& product : products) {
    units += units_of(product);
    if (product.rows > 0) runtime.weight_bytes += static_cast<std::int64_t>(product.matrix->bytes().size());
  }
  if (units == 0) return;
  // Experts have rows in unequal numbers, so that pieces of equal length take unequal time: more of them even
  // it out.
  const std::int64_t pieces =
      runtime.pool.threads() == 1 ? 1 : std::min<std::int64_t>(units, 16 * runtime.pool.threads());
  runtime.pool.run(static_cast<int>(pieces), [&](int piece) {
    const std::int64_t begin = units * piece / pieces, end = units * (piece + 1) / pieces;
    std::int64_t first = 0;
    for (const RowsProduct& product : products) {
      const std::int64_t last = first + units_of(product);
      const std::int64_t from = std::max(begin, first), to = std::min(end, last);
      if (from < to) multiply_units(runtime, product, from - first, to - first);
      first = last;
    }
  });
}

kernels::Activations rows_from(const kernels::Activations& x, std::int64_t row, std::int64_t n) {
  const std::int64_t groups = n / kernels::kActivationGroup;
  kernels::Activations part = x;
  part.rows += row * n;
  if (x.values == nullptr) return part;
  part.values += row * n;
  part.scales += row * groups;
  part.sums += row * groups / 2;
  part.code_sums += row * groups;
  return part;
}

}  // namespace godwit::ops
