// A weight matrix in the layout of the quantized matmul, and products with it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/packed_weights.h"
#include "ops/native_runtime.h"

namespace godwit::ops {

class PackedMatrix {
 public:
  // `gguf` holds the rows back to back as in the file. Throws what kernels::pack_bands throws.
  PackedMatrix(const kernels::PackedShape& shape, std::span<const std::byte> gguf, ThreadPool& pool);

  const kernels::PackedShape& shape() const { return shape_; }
  const std::byte* data() const { return bytes_.data(); }
  std::size_t bytes() const { return bytes_.size(); }

 private:
  kernels::PackedShape shape_;
  AlignedBuffer bytes_;
};

// y = x W^T + bias; an empty bias is none.
struct PackedLinear {
  std::shared_ptr<const PackedMatrix> matrix;
  std::vector<float> bias;

  std::int64_t inputs() const { return matrix->shape().columns; }
  std::int64_t outputs() const { return matrix->shape().rows; }
};

// Rows of f32 as int8 in the runtime's scratch.
kernels::Activations quantize(NativeRuntime& runtime, const float* x, std::int64_t rows, std::int64_t n);

// One of several products that share their activations.
struct Product {
  const PackedLinear& layer;
  float* y;  // [rows, layer.outputs()], rows y_stride apart
  std::int64_t y_stride;
  bool adds = false;  // y += x W^T + bias instead of y = x W^T + bias
};
// y = W x for every product. A bias lies in y before the sum over groups is added, so that it costs no pass
// of its own.
void multiply(NativeRuntime& runtime, const kernels::Activations& x, std::int64_t rows,
              std::span<const Product> products);

}  // namespace godwit::ops
