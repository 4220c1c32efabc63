#include "models/gemma4_experts.h"

#include <cmath>

#include "base/error.h"
#include "base/mx_ops.h"

namespace godwit::models {
namespace {

// The product is formed first, in the dtype of the scale, and then normalised by: rounding between norm,
// scale and root would give other bits.
mx::array gain_of(const checkpoint::WeightScope& router, int hidden) {
  const mx::array scale = router.dense("scale", {hidden});
  return scale * scalar_like(std::pow(hidden, -0.5), scale);
}

}  // namespace

Gemma4FeedForward::Gemma4FeedForward(const checkpoint::WeightScope& layer, const Options& o)
    : before_mlp_(layer / "pre_feedforward_layernorm", o.norm),
      after_mlp_(layer / "post_feedforward_layernorm_1", o.norm),
      before_experts_(layer / "pre_feedforward_layernorm_2", o.norm),
      after_experts_(layer / "post_feedforward_layernorm_2", o.norm),
      mlp_(layer / "mlp", o.mlp),
      router_(layer / "router", o.router),
      experts_(layer, o.experts),
      router_gain_(gain_of(layer / "router", o.norm.dims)),
      eps_(static_cast<float>(o.norm.eps)) {}

nn::FeedForwardPlan Gemma4FeedForward::plan() const {
  fail(ErrorCode::unsupported, "gemma4", "native mode has no experts");
}

mx::array Gemma4FeedForward::operator()(const mx::array& x) const {
  const mx::array dense = after_mlp_(mlp_(before_mlp_(x)));
  const nn::Routed choice = router_(mx::fast::rms_norm(x, router_gain_, eps_));
  const mx::array each = experts_(before_experts_(x), choice.experts);
  return dense + after_experts_(nn::weighted_sum(each, choice.weights));
}

}  // namespace godwit::models
