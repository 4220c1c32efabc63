// The feed-forward branch of a mixture layer: a dense MLP and routed experts beside it, each with norms of
// its own.
#pragma once

#include "nn/feed_forward.h"
#include "nn/mlp.h"
#include "nn/norm.h"
#include "nn/routing.h"
#include "nn/switch_glu.h"

namespace godwit::models {

class Gemma4FeedForward final : public nn::FeedForward {
 public:
  struct Options {
    nn::NormOptions norm;  // of the residual stream
    nn::Mlp::Options mlp;
    nn::Router::Options router;
    nn::SwitchGlu::Options experts;
  };
  // Reads what mlp, router and experts hold below `layer`, router.scale, pre_feedforward_layernorm{,_2} and
  // post_feedforward_layernorm_{1,2}.
  Gemma4FeedForward(const checkpoint::WeightScope& layer, const Options& options);

  // x: the residual stream itself, which the router reads.
  mx::array operator()(const mx::array& x) const override;
  bool is_native() const override { return mlp_.is_native(); }
  nn::FeedForwardPlan plan() const override;  // Error{unsupported}

 private:
  nn::Norm before_mlp_, after_mlp_, before_experts_, after_experts_;
  nn::Mlp mlp_;
  nn::Router router_;
  nn::SwitchGlu experts_;
  mx::array router_gain_;  // [hidden]: the router's norm, its scale and 1 / sqrt(hidden) in one
  float eps_;
};

}  // namespace godwit::models
