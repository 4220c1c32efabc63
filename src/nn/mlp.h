// The gated feed-forward network: down(activation(gate(x)) * up(x)).
#pragma once

#include "base/mx.h"
#include "checkpoint/weight_scope.h"
#include "nn/activations.h"
#include "nn/linear.h"
#include "ops/native_branch.h"

namespace godwit::nn {

class GatedMlp {
 public:
  struct Options {
    int hidden = 0;
    int intermediate = 0;
    Activation activation = Activation::silu;
    bool bias = false;
  };
  // Reads scope.{gate_proj, up_proj, down_proj}.
  GatedMlp(const checkpoint::WeightScope& scope, const Options& options);
  mx::array operator()(const mx::array& x) const;

  // What a fused primitive takes, but the norms around the branch. Error{unsupported} naming a gate that our
  // kernels lack.
  ops::MlpPlan plan() const;
  bool is_native() const { return gate_.is_native(); }

 private:
  Linear gate_;
  Linear up_;
  Linear down_;
  Activation activation_;
};

}  // namespace godwit::nn
