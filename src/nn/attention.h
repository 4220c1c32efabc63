// Multi-head attention with grouped keys over a layer's state:
// project -> (q/k norm) -> rope -> store and attend -> output projection.
#pragma once

#include <optional>

#include "base/mx.h"
#include "cache/state.h"
#include "checkpoint/weight_scope.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/rope.h"
#include "ops/native_branch.h"

namespace godwit::nn {

class Attention {
 public:
  struct Options {
    int hidden = 0;
    int heads = 0;
    int kv_heads = 0;
    int head_dim = 0;
    double scale = 1.0;
    bool qkv_bias = false;
    bool output_bias = false;
    std::optional<NormGain> qk_norm;  // per head, before rope
    double norm_eps = 0;
    float soft_cap = 0.0f;
  };
  // Reads scope.{q_proj, k_proj, v_proj, o_proj} and, with a q/k norm, scope.{q_norm, k_norm} [head_dim].
  // Without a rope, positions are not encoded.
  Attention(const checkpoint::WeightScope& scope, const Options& options, std::optional<Rope> rope);

  // What a fused primitive takes, but the norms around the branch. Error{unsupported} naming what our kernels
  // cannot do.
  ops::AttentionPlan plan() const;
  bool is_native() const { return q_.is_native(); }

  // x [tokens, hidden] -> [tokens, hidden]
  mx::array operator()(const mx::array& x, const cache::Step& step, cache::LayerState& state) const;

 private:
  mx::array heads(const Linear& projection, const std::optional<RmsNorm>& norm, const mx::array& x,
                  int count) const;
  mx::array turned(const mx::array& x, const cache::Step& step) const {
    return rope_ ? (*rope_)(x, step) : x;
  }

  Options options_;
  Linear q_;
  Linear k_;
  Linear v_;
  Linear o_;
  std::optional<RmsNorm> q_norm_;
  std::optional<RmsNorm> k_norm_;
  std::optional<Rope> rope_;
};

}  // namespace godwit::nn
