#include "nn/embedding.h"

#include "base/mx_ops.h"

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
                     std::optional<mx::Dtype> output)
    : weight_(scope.matrix(vocabulary, dims)), output_(output) {}

mx::array Embedding::operator()(const mx::array& tokens) const {
  if (weight_.kind == WeightKind::blocks) return weight_.take_rows(tokens).dequantize(dtype());
  const mx::array rows = weight_.kind == WeightKind::dense ? mx::take(weight_.data, tokens, 0)
                                                           : dequantized_rows(weight_, tokens, output_);
  return output_ ? mx::astype(rows, *output_) : rows;
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
      break;
  }
  return mx::float32;
}

int Embedding::element_bytes() const { return static_cast<int>(mx::size_of(dtype())); }

}  // namespace godwit::nn
