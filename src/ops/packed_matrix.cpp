#include "ops/packed_matrix.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace godwit::ops {
namespace {

// A single row walks four bands at once, so bands are shared out by fours.
constexpr std::int64_t kBandsTogether = 4;

void prepare_bias(const NativeRuntime& runtime, const Product& product, std::int64_t rows) {
  const std::vector<float>& bias = product.layer.bias;
  if (bias.empty()) return;
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const y = product.y + row * product.y_stride;
    if (product.adds) {
      runtime.kernels.add({y, bias.data(), y, product.layer.outputs()});
    } else {
      std::copy(bias.begin(), bias.end(), y);
    }
  }
}

}  // namespace

template <typename Pack>
void PackedMatrix::pack_with(ThreadPool& pool, const RowsPacked& packed, Pack&& pack) {
  const std::int64_t bands = kernels::band_count(shape_), pieces = std::min<std::int64_t>(bands, 64);
  pool.run(static_cast<int>(pieces), [&](int piece) {
    const std::int64_t begin = bands * piece / pieces, end = bands * (piece + 1) / pieces;
    pack(begin, end);
    if (packed) packed(begin * kernels::kPackedRows, std::min(end * kernels::kPackedRows, shape_.rows));
  });
}

PackedMatrix::PackedMatrix(const kernels::PackedShape& shape, std::span<const std::byte> rows,
                           ThreadPool& pool, const RowsPacked& packed)
    : shape_(shape), own_(static_cast<std::size_t>(kernels::packed_bytes(shape))), bytes_(own_.data(), own_.size()) {
  pack_with(pool, packed, [&](std::int64_t begin, std::int64_t end) {
    kernels::pack_bands(shape, rows.data(), own_.data(), begin, end);
  });
}

PackedMatrix::PackedMatrix(const kernels::PackedShape& shape, const kernels::AffinePlanes& planes,
                           ThreadPool& pool, const RowsPacked& packed)
    : shape_(shape), own_(static_cast<std::size_t>(kernels::packed_bytes(shape))), bytes_(own_.data(), own_.size()) {
  pack_with(pool, packed, [&](std::int64_t begin, std::int64_t end) {
    kernels::pack_affine_bands(shape, planes, own_.data(), begin, end);
  });
}

PackedMatrix::PackedMatrix(const kernels::PackedShape& shape, std::shared_ptr<const FileMap> file, std::size_t offset)
    : shape_(shape), file_(std::move(file)) {
  const auto held = file_->bytes();
  const auto size = static_cast<std::size_t>(kernels::packed_bytes(shape));
  if (offset % 64 != 0 || offset > held.size() || size > held.size() - offset)
    fail(ErrorCode::corrupt_file, "packed_matrix", "{}: {} bytes at {} of {}", file_->path().string(), size, offset,
         held.size());
  bytes_ = held.subspan(offset, size);
}

std::string text_of(const PackedMatrix& matrix) {
  const kernels::PackedShape& shape = matrix.shape();
  return fmt::format("{} {}x{}", kernels::name_of(shape.format), shape.rows, shape.columns);
}

std::string text_of(const PackedLinear& layer) {
  return text_of(*layer.matrix) + (layer.bias.empty() ? "" : " with bias");
}

kernels::Activations quantize(NativeRuntime& runtime, const float* x, std::int64_t rows, std::int64_t n) {
  if (runtime.activations == kernels::ActivationForm::f32)
    return {nullptr, nullptr, nullptr, nullptr, x, runtime.activations};
  const std::int64_t groups = n / kernels::kActivationGroup;
  const auto values = runtime.scratch.take<std::int8_t>(rows * n);
  const auto scales = runtime.scratch.take<float>(rows * groups);
  const auto sums = runtime.scratch.take<float>(rows * groups / 2);
  const auto code_sums = runtime.scratch.take<std::int32_t>(rows * groups);
  runtime.share(rows, [&](std::int64_t begin, std::int64_t end) {
    runtime.kernels.quantize_rows({.x = x + begin * n,
                                   .rows = end - begin,
                                   .n = n,
                                   .x_stride = n,
                                   .values = values.data() + begin * n,
                                   .scales = scales.data() + begin * groups,
                                   .sums = sums.data() + begin * groups / 2,
                                   .code_sums = code_sums.data() + begin * groups});
  });
  return {values.data(), scales.data(), sums.data(), code_sums.data(), x, runtime.activations};
}

void multiply(NativeRuntime& runtime, const kernels::Activations& x, std::int64_t rows,
              std::span<const Product> products) {
  std::int64_t units = 0;  // of four bands, over all products
  for (const Product& product : products) {
    prepare_bias(runtime, product, rows);
    runtime.weight_bytes += static_cast<std::int64_t>(product.layer.matrix->bytes().size());
    units += (kernels::band_count(product.layer.matrix->shape()) + kBandsTogether - 1) / kBandsTogether;
  }
  runtime.share(units, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t first = 0;
    for (const Product& product : products) {
      const PackedMatrix& matrix = *product.layer.matrix;
      const std::int64_t bands = kernels::band_count(matrix.shape());
      const std::int64_t last = first + (bands + kBandsTogether - 1) / kBandsTogether;
      const std::int64_t from = std::max(begin, first), to = std::min(end, last);
      if (from < to)
        runtime.kernels.quant_matmul({.shape = matrix.shape(),
                                      .packed = matrix.data(),
                                      .x = x,
                                      .y = product.y,
                                      .y_stride = product.y_stride,
                                      .m_begin = 0,
                                      .m_end = rows,
                                      .band_begin = (from - first) * kBandsTogether,
                                      .band_end = std::min((to - first) * kBandsTogether, bands),
                                      .accumulate = product.adds || !product.layer.bias.empty()});
      first = last;
    }
  });
}

}  // namespace godwit::ops
