// The gated feed-forward network: down(activation(gate(x)) * up(x)).
#pragma once

#include "base/mx.h"
#include "checkpoint/weight_scope.h"
#include "nn/activations.h"
#include "nn/linear.h"

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

 private:
  Linear gate_;
  Linear up_;
  Linear down_;
  Activation activation_;
};

}  // namespace godwit::nn
