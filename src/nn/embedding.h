// Token embedding: rows of a matrix in any weight format.
#pragma once

#include <optional>

#include "base/mx.h"
#include "checkpoint/weight_scope.h"
#include "nn/linear.h"

namespace godwit::nn {

class Embedding {
 public:
  // `output`: the dtype of the activations that start here. Absent: what the file implies, as mlx-lm does.
  // `scale`, a scalar, is multiplied in after a cast to that dtype.
  Embedding(const checkpoint::WeightScope& scope, int vocabulary, int dims,
            std::optional<mx::Dtype> output = {}, std::optional<mx::array> scale = {});

  // tokens i32 [n], each below the vocabulary -> [n, dims]
  mx::array operator()(const mx::array& tokens) const;
  // The tied head.
  Linear as_linear() const { return Linear(weight_); }
  // Bytes of one element of what operator() returns.
  int element_bytes() const;

 private:
  mx::Dtype dtype() const;
  mx::array rows(const mx::array& tokens) const;

  checkpoint::Weight weight_;
  std::optional<mx::Dtype> output_;
  std::optional<mx::array> scale_;
  float native_scale_ = 1.0f;
};

}  // namespace godwit::nn
