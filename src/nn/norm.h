// Normalisation over the last axis, on MLX's fast forms.
#pragma once

#include <memory>
#include <optional>

#include "base/mx.h"
#include "checkpoint/weight_scope.h"
#include "ops/native_layers.h"

namespace godwit::nn {

enum class NormGain {
  weight,           // x * w
  one_plus_weight,  // x * (1 + w): the Gemma families
};

class RmsNorm {
 public:
  // Reads scope.weight [dims]. The sum 1 + w is formed in w's dtype, as mlx-lm forms it at each call; a file
  // that stores the sum already (GGUF) is taken as it is.
  RmsNorm(const checkpoint::WeightScope& scope, int dims, double eps, NormGain gain = NormGain::weight);
  mx::array operator()(const mx::array& x) const;
  // For a fused primitive.
  ops::NormPlan plan() const;

 private:
  mx::array weight_;
  float eps_;
  std::shared_ptr<const ops::NormPlan> native_;  // in `native` mode
};

class LayerNorm {
 public:
  // Reads scope.weight [dims] and, if asked for, scope.bias [dims].
  LayerNorm(const checkpoint::WeightScope& scope, int dims, double eps, bool bias);
  mx::array operator()(const mx::array& x) const;

 private:
  mx::array weight_;
  std::optional<mx::array> bias_;
  float eps_;
};

}  // namespace godwit::nn
