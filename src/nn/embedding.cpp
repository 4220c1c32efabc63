#include "nn/embedding.h"

#include <utility>

#include "base/mx_ops.h"
#include "nn/native_values.h"
#include "ops/native_layers.h"

namespace godwit::nn {
namespace {

using checkpoint::Weight;
using checkpoint::WeightKind;

// Gathered rows of the packed planes, then one dequantization: only the tokens' rows are ever formed.
mx::array dequantized_rows(const Weight& w, const mx::array& tokens, const std::optional<mx::Dtype>& output) {
  const auto rows = [&](const mx::array& plane) { return mx::take(plane, tokens, 0); };
  mx::array scales = rows(w.scales.value());
  std::optional<mx::array> biases;
  if (w.biases) biases = rows(*w.biases);
  if (output && w.kind == WeightKind::affine) {  // product and sum in the wide dtype, where they are exact
    scales = mx::astype(scales, *output);
    biases = mx::astype(biases.value(), *output);
  }
  return mx::dequantize(rows(w.data), scales, biases, w.group, w.bits, w.mlx_mode());
}

}  // namespace

Embedding::Embedding(const checkpoint::WeightScope& scope, int vocabulary, int dims,
                     std::optional<mx::Dtype> output, std::optional<mx::array> scale)
    : weight_(scope.matrix(vocabulary, dims)), output_(output), scale_(std::move(scale)) {
  if (scale_) native_scale_ = native_values(*scale_)[0];
}

mx::array Embedding::operator()(const mx::array& tokens) const {
  if (weight_.kind == WeightKind::packed) return ops::native_embedding(tokens, weight_.packed, native_scale_);
  const mx::array h = rows(tokens);
  return scale_ ? h * mx::astype(*scale_, h.dtype()) : h;
}

mx::array Embedding::rows(const mx::array& tokens) const {
  if (weight_.kind == WeightKind::blocks) return weight_.take_rows(tokens).dequantize(dtype());
  const mx::array values = weight_.kind == WeightKind::dense ? mx::take(weight_.data, tokens, 0)
                                                             : dequantized_rows(weight_, tokens, output_);
  return output_ ? mx::astype(values, *output_) : values;
}

mx::Dtype Embedding::dtype() const {
  if (output_) return *output_;
  switch (weight_.kind) {
    case WeightKind::dense:
      return weight_.data.dtype();
    case WeightKind::affine:
      return weight_.scales.value().dtype();
    case WeightKind::mxfp4:
    case WeightKind::mxfp8:
    case WeightKind::nvfp4:
      return mx::bfloat16;  // MLX's default for scales without a float dtype
    case WeightKind::blocks:
    case WeightKind::packed:
      break;
  }
  return mx::float32;
}

int Embedding::element_bytes() const { return static_cast<int>(mx::size_of(dtype())); }

}  // namespace godwit::nn
