// Attention of a text to all of itself, without state, positions or masks: encoders.
#pragma once

#include "base/mx.h"
#include "checkpoint/weight_scope.h"
#include "nn/linear.h"
#include "nn/qkv.h"

namespace godwit::nn {

class SelfAttention {
 public:
  struct Options {
    int hidden = 0;
    int heads = 0;  // as many for keys and values
    bool bias = true;
  };
  // Reads scope.{q_proj, k_proj, v_proj, o_proj}. Scores are scaled by head_dim^-1/2.
  SelfAttention(const checkpoint::WeightScope& scope, const Options& options);
  // x [tokens, hidden] of one text -> [tokens, hidden]
  mx::array operator()(const mx::array& x) const;

 private:
  int hidden_;
  float scale_;
  Qkv qkv_;
  Linear o_;
};

}  // namespace godwit::nn
