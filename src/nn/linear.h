// y = x W^T (+ b) over any weight format, in the op form that mlx-lm uses for it.
#pragma once

#include <memory>
#include <optional>

#include "base/mx.h"
#include "checkpoint/weight.h"
#include "checkpoint/weight_scope.h"

namespace godwit::nn {

class Linear {
 public:
  // Reads scope.weight, which can be exchanged later (WeightStore::exchangeable), as [outputs, inputs] and, if asked for, scope.bias [outputs].
  Linear(const checkpoint::WeightScope& scope, int inputs, int outputs, bool bias = false);
  // The tied head: a matrix that something else owns already.
  explicit Linear(checkpoint::Weight weight) : weight_(std::make_shared<checkpoint::Weight>(std::move(weight))) {
    take_native();
  }

  // x [.., inputs] -> [.., outputs]. A dense layer with bias is one addmm, a quantized one adds the bias
  // after the product: the two round differently, so neither is written as the other.
  mx::array operator()(const mx::array& x) const;

  // Whether the matrix is packed for our kernels, and the parts that a fused primitive takes.
  bool is_native() const { return native_ != nullptr; }
  const ops::PackedLinear& native() const { return *native_; }

 private:
  void take_native();

  std::shared_ptr<const checkpoint::Weight> weight_;
  std::optional<mx::array> bias_;
  std::shared_ptr<const ops::PackedLinear> native_;
};

}  // namespace godwit::nn
