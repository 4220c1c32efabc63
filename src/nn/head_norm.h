// The norm on queries or keys, in the forms that families give it.
#pragma once

#include <optional>

#include "base/mx.h"
#include "checkpoint/weight_scope.h"
#include "nn/norm.h"

namespace godwit::nn {

enum class HeadNormForm {
  shared,  // each head by one weight [head_dim]
  own,     // each head by its own row of a weight [heads, head_dim]: layer norms without bias
  across,  // all heads together by a weight [heads * head_dim]
};

struct HeadNormOptions {
  HeadNormForm form = HeadNormForm::shared;
  NormKind kind = NormKind::rms;
  NormGain gain = NormGain::weight;
  double eps = 0;
  bool after_rope = false;
};

class HeadNorm {
 public:
  // Reads scope.weight; for `own` also scope.norms.<head>.weight [head_dim], stacked, where a file splits it.
  HeadNorm(const checkpoint::WeightScope& scope, int heads, int head_dim, const HeadNormOptions& options);
  // x [tokens, heads, head_dim], same shape back.
  mx::array operator()(const mx::array& x) const;
  bool after_rope() const { return options_.after_rope; }
  // For a fused primitive. Error{unsupported} naming a form that our kernels lack.
  ops::NormPlan plan() const;

 private:
  HeadNormOptions options_;
  std::optional<Norm> norm_;         // shared and across
  std::optional<mx::array> weight_;  // own: [heads, head_dim]
};

}  // namespace godwit::nn
