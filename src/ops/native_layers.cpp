#include "ops/native_layers.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/mx_ops.h"
#include "ops/composed.h"
#include "ops/native_primitive.h"

namespace godwit::ops {
namespace {

class NativeEmbedding final : public NativePrimitive {
 public:
  NativeEmbedding(std::shared_ptr<const PackedMatrix> matrix, float scale)
      : matrix_(std::move(matrix)), scale_(scale) {}
  const char* name() const override { return "NativeEmbedding"; }
  const void* constants() const override { return matrix_.get(); }
  std::string text() const override { return fmt::format("{} {} times {}", name(), text_of(*matrix_), scale_); }

  void run(const NativeCall& call) const override {
    const auto* tokens = static_cast<const std::int32_t*>(call.input);
    const kernels::PackedShape& shape = matrix_->shape();
    for (std::int64_t i = 0; i < call.tokens; ++i)
      if (tokens[i] < 0 || tokens[i] >= shape.rows)
        fail(ErrorCode::invalid_argument, "native", "token {} of a vocabulary of {}", tokens[i], shape.rows);
    call.runtime.share(call.tokens, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        float* const out = call.output + i * shape.columns;
        kernels::dequant_packed_row(shape, matrix_->data(), tokens[i], out);
        if (scale_ == 1.0f) continue;
        for (std::int64_t d = 0; d < shape.columns; ++d) out[d] *= scale_;
      }
    });
  }
  mx::array composed(const mx::array& x, Constants& constants, const StepLayers&) const override {
    const mx::array rows = mx::take(constants.matrix("matrix", matrix_), x, 0);
    return rows * scalar_like(scale_, rows);
  }

 private:
  std::shared_ptr<const PackedMatrix> matrix_;
  float scale_;
};

class NativeNorm final : public NativePrimitive {
 public:
  explicit NativeNorm(std::shared_ptr<const NormPlan> norm) : norm_(std::move(norm)) {}
  const char* name() const override { return "NativeNorm"; }
  const void* constants() const override { return norm_.get(); }
  std::string text() const override { return fmt::format("{} {}", name(), norm_->weight.size()); }

  void run(const NativeCall& call) const override {
    const auto n = static_cast<std::int64_t>(norm_->weight.size());
    call.runtime.share(call.tokens, [&](std::int64_t begin, std::int64_t end) {
      normalize(call.runtime, *norm_, static_cast<const float*>(call.input) + begin * n,
                call.output + begin * n, end - begin);
    });
  }
  mx::array composed(const mx::array& x, Constants& constants, const StepLayers&) const override {
    return composed_norm(x, *norm_, "weight", constants);
  }

 private:
  std::shared_ptr<const NormPlan> norm_;
};

class NativeLinear final : public NativePrimitive {
 public:
  explicit NativeLinear(std::shared_ptr<const PackedLinear> layer) : layer_(std::move(layer)) {}
  const char* name() const override { return "NativeLinear"; }
  const void* constants() const override { return layer_.get(); }
  std::string text() const override { return fmt::format("{} {}", name(), text_of(*layer_)); }

  void run(const NativeCall& call) const override {
    const auto x =
        quantize(call.runtime, static_cast<const float*>(call.input), call.tokens, layer_->inputs());
    const Product product{*layer_, call.output, layer_->outputs()};
    multiply(call.runtime, x, call.tokens, {&product, 1});
  }
  mx::array composed(const mx::array& x, Constants& constants, const StepLayers&) const override {
    return composed_linear(x, *layer_, "matrix", constants);
  }

 private:
  std::shared_ptr<const PackedLinear> layer_;
};

}  // namespace

void normalize(const NativeRuntime& runtime, const NormPlan& norm, const float* x, float* y,
               std::int64_t rows) {
  const auto n = static_cast<std::int64_t>(norm.weight.size());
  runtime.kernels.rms_norm({.x = x,
                            .weight = norm.weight.data(),
                            .y = y,
                            .rows = rows,
                            .n = n,
                            .x_stride = n,
                            .y_stride = n,
                            .epsilon = norm.epsilon});
}

void activate_in_place(NativeRuntime& runtime, kernels::Activation activation, float* gate, const float* up,
                       std::int64_t rows, std::int64_t n) {
  runtime.share(rows, [&](std::int64_t begin, std::int64_t end) {
    runtime.kernels.gated({.activation = activation,
                           .gate = gate + begin * n,
                           .up = up + begin * n,
                           .y = gate + begin * n,
                           .rows = end - begin,
                           .n = n,
                           .gate_stride = n,
                           .up_stride = n,
                           .y_stride = n});
  });
}

mx::array native_embedding(const mx::array& tokens, std::shared_ptr<const PackedMatrix> matrix, float scale) {
  GODWIT_CHECK(tokens.dtype() == mx::int32 && tokens.ndim() == 1, "tokens are not i32 [n]");
  const std::int64_t columns = matrix->shape().columns;
  return native_node(tokens, columns, std::make_shared<NativeEmbedding>(std::move(matrix), scale));
}

mx::array native_norm(const mx::array& x, std::shared_ptr<const NormPlan> norm) {
  const auto n = static_cast<std::int64_t>(norm->weight.size());
  GODWIT_CHECK(x.ndim() == 2 && x.shape(1) == n, "a norm of {} over rows of {}", n, x.shape(-1));
  return native_node(x, n, std::make_shared<NativeNorm>(std::move(norm)));
}

mx::array native_linear(const mx::array& x, std::shared_ptr<const PackedLinear> layer) {
  GODWIT_CHECK(x.ndim() == 2 && x.shape(1) == layer->inputs(), "{} inputs, rows of {}", layer->inputs(),
               x.shape(-1));
  const std::int64_t outputs = layer->outputs();
  return native_node(x, outputs, std::make_shared<NativeLinear>(std::move(layer)));
}

}  // namespace godwit::ops
