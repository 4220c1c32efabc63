#include "ops/dequantize.h"

#include <mlx/backend/cpu/encoder.h>
#include <mlx/primitives.h>

#include <memory>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/mx_ops.h"

namespace godwit::ops {
namespace {

class DequantizeBlocks final : public mx::Primitive {
 public:
  DequantizeBlocks(mx::Stream stream, kernels::BlockFormat format) : Primitive(stream), format_(format) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    mx::array& out = outputs[0];
    out.set_data(mx::allocator::malloc(out.nbytes()));
    // The tasks of a stream run later on its own thread: they hold the input alive by value and the output
    // weakly, as the graph owns it until the stream is done.
    auto& encoder = mx::cpu::get_command_encoder(stream());
    encoder.set_input_array(inputs[0]);
    encoder.set_output_array(out);
    encoder.dispatch([format = format_, in = inputs[0], result = mx::array::unsafe_weak_copy(out)]() mutable {
      const auto size = kernels::block_size(format);
      kernels::dequant_blocks(format, reinterpret_cast<const std::byte*>(in.data<std::uint8_t>()),
                              in.size() / static_cast<std::size_t>(size.bytes), result.data<float>());
    });
  }
  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    fail(ErrorCode::internal, "dequantize", "blocks are decoded on the CPU stream only");
  }
  const char* name() const override { return "DequantizeBlocks"; }
  bool is_equivalent(const mx::Primitive& other) const override {
    return static_cast<const DequantizeBlocks&>(other).format_ == format_;
  }

 private:
  kernels::BlockFormat format_;
};

class DequantizePacked final : public mx::Primitive {
 public:
  DequantizePacked(mx::Stream stream, std::shared_ptr<const PackedMatrix> matrix)
      : Primitive(stream), matrix_(std::move(matrix)) {}

  void eval_cpu(const std::vector<mx::array>&, std::vector<mx::array>& outputs) override {
    mx::array& out = outputs[0];
    out.set_data(mx::allocator::malloc(out.nbytes()));
    auto& encoder = mx::cpu::get_command_encoder(stream());
    encoder.set_output_array(out);
    encoder.dispatch([matrix = matrix_, result = mx::array::unsafe_weak_copy(out)]() mutable {
      const kernels::PackedShape& shape = matrix->shape();
      for (std::int64_t row = 0; row < shape.rows; ++row)
        kernels::dequant_packed_row(shape, matrix->data(), row, result.data<float>() + row * shape.columns);
    });
  }
  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    fail(ErrorCode::internal, "dequantize", "packed matrices are decoded on the CPU stream only");
  }
  const char* name() const override { return "DequantizePacked"; }
  bool is_equivalent(const mx::Primitive& other) const override {
    return static_cast<const DequantizePacked&>(other).matrix_ == matrix_;
  }

 private:
  std::shared_ptr<const PackedMatrix> matrix_;
};

}  // namespace

mx::array dequantize(std::shared_ptr<const PackedMatrix> matrix) {
  const kernels::PackedShape& shape = matrix->shape();
  mx::Shape sizes = {checked_cast<int>(shape.rows, "rows"), checked_cast<int>(shape.columns, "columns")};
  const auto stream = mx::default_stream(mx::Device::cpu);
  return {std::move(sizes), mx::float32, std::make_shared<DequantizePacked>(stream, std::move(matrix)), {}};
}

mx::array dequantize(const mx::array& blocks, kernels::BlockFormat format, mx::Dtype dtype) {
  const auto size = kernels::block_size(format);
  GODWIT_CHECK(blocks.dtype() == mx::uint8 && blocks.ndim() > 0 && blocks.shape(-1) % size.bytes == 0,
               "a row of {} bytes is not whole blocks of {}", blocks.ndim() ? blocks.shape(-1) : 0,
               size.bytes);
  const auto stream = mx::default_stream(mx::Device::cpu);
  mx::Shape shape = blocks.shape();
  shape.back() = shape.back() / size.bytes * size.elements;
  const mx::array rows = mx::contiguous(blocks, /*allow_col_major=*/false, stream);
  const mx::array values(std::move(shape), mx::float32, std::make_shared<DequantizeBlocks>(stream, format),
                         {rows});
  return dtype == mx::float32 ? values : mx::astype(values, dtype, stream);
}

}  // namespace godwit::ops
