// A weight matrix in the layout of the quantized matmul, and products with it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/file_map.h"
#include "kernels/packed_weights.h"
#include "ops/native_runtime.h"

namespace godwit::ops {

class PackedMatrix {
 public:
  // Told of rows [begin, end) of the source once they are packed, by threads of the pool, in any order.
  using RowsPacked = std::function<void(std::int64_t begin, std::int64_t end)>;

  // GGUF blocks or numbers of 16 bits, or planes of affine quantization, rows back to back as in the file.
  // Throws what kernels::pack_bands and kernels::pack_affine_bands throw.
  PackedMatrix(const kernels::PackedShape& shape, std::span<const std::byte> rows, ThreadPool& pool,
               const RowsPacked& packed = {});
  PackedMatrix(const kernels::PackedShape& shape, const kernels::AffinePlanes& planes, ThreadPool& pool,
               const RowsPacked& packed = {});
  // One that was packed before: packed_bytes(shape) bytes from `offset` on, a multiple of 64. Throws
  // Error{corrupt_file} where the file does not hold them.
  PackedMatrix(const kernels::PackedShape& shape, std::shared_ptr<const FileMap> file, std::size_t offset);

  const kernels::PackedShape& shape() const { return shape_; }
  const std::byte* data() const { return bytes_.data(); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  // pack(begin, end) for all bands, by parts.
  template <typename Pack>
  void pack_with(ThreadPool& pool, const RowsPacked& packed, Pack&& pack);

  kernels::PackedShape shape_;
  AlignedBuffer own_;                    // empty where the bytes are the file's
  std::shared_ptr<const FileMap> file_;  // null where they are our own
  std::span<const std::byte> bytes_;
};

// y = x W^T + bias; an empty bias is none.
struct PackedLinear {
  std::shared_ptr<const PackedMatrix> matrix;
  std::vector<float> bias;

  std::int64_t inputs() const { return matrix->shape().columns; }
  std::int64_t outputs() const { return matrix->shape().rows; }
};

// Format and shape, "q4_1:32:f16 576x1536", and whether there is a bias: for the key of a plan.
std::string text_of(const PackedMatrix& matrix);
std::string text_of(const PackedLinear& layer);

// Rows of f32 in the runtime's form: as int8 in its scratch, or as they are. x stays what it is until the
// products are done.
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
