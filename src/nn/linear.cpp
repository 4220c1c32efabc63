#include "nn/linear.h"

#include "base/mx_ops.h"
#include "nn/native_values.h"
#include "ops/native_layers.h"

namespace godwit::nn {
namespace {

using checkpoint::Weight;
using checkpoint::WeightKind;

mx::array quantized_product(const mx::array& x, const Weight& w) {
  return mx::quantized_matmul(x, w.data, w.scales.value(), w.biases, /*transpose=*/true, w.group, w.bits,
                              w.mlx_mode());
}

mx::array dense_product(const mx::array& x, const mx::array& w, const std::optional<mx::array>& bias) {
  const mx::array transposed = mx::transpose(w);
  return bias ? mx::addmm(*bias, x, transposed) : mx::matmul(x, transposed);
}

}  // namespace

Linear::Linear(const checkpoint::WeightScope& scope, int inputs, int outputs, bool bias)
    : weight_(scope.exchangeable_matrix(outputs, inputs)) {
  if (bias) bias_ = scope.dense("bias", {outputs});
  take_native();
}

void Linear::take_native() {
  if (weight_->kind != WeightKind::packed) return;
  native_ = std::make_shared<ops::PackedLinear>(
      ops::PackedLinear{weight_->packed, bias_ ? native_values(*bias_) : std::vector<float>()});
}

mx::array Linear::operator()(const mx::array& x) const {
  switch (weight_->kind) {
    case WeightKind::packed:
      return ops::native_linear(x, native_);
    case WeightKind::dense:
      return dense_product(x, weight_->data, bias_);
    case WeightKind::blocks:  // no MLX layout: exact values, formed for this use and dropped after it
      return dense_product(x, weight_->dequantize(x.dtype()), bias_);
    case WeightKind::affine:
    case WeightKind::mxfp4:
    case WeightKind::mxfp8:
    case WeightKind::nvfp4:
      break;
  }
  const mx::array y = quantized_product(x, *weight_);
  return bias_ ? y + *bias_ : y;
}

}  // namespace godwit::nn
