// The sparse feed-forward network: a router, the experts it chooses, and for some families one shared expert
// that every token runs.
#pragma once

#include <optional>
#include <vector>

#include "base/mx.h"
#include "checkpoint/weight_scope.h"
#include "nn/feed_forward.h"
#include "nn/linear.h"
#include "nn/mlp.h"
#include "nn/routing.h"
#include "nn/switch_glu.h"

namespace godwit::nn {

class SparseMlp final : public FeedForward {
 public:
  struct Options {
    Router::Options router;
    SwitchGlu::Options experts;
    // The routed sum is cast to the dtype of the experts' output (Qwen3-MoE), or stays as it is.
    bool casts_sum = false;
    // scope.shared_expert, times sigmoid(scope.shared_expert_gate), is added after the routed sum.
    std::optional<Mlp::Options> shared = {};
  };
  SparseMlp(const checkpoint::WeightScope& scope, const Options& options);

  mx::array operator()(const mx::array& x) const override;
  bool is_native() const override {
    return router_.is_native() && experts_.is_native() && (!shared_ || shared_->is_native());
  }
  FeedForwardPlan plan() const override;

 private:
  ops::SharedExpert native_shared() const;

  Router router_;
  SwitchGlu experts_;
  bool casts_sum_;
  std::optional<Mlp> shared_;
  std::optional<Linear> shared_gate_;
  std::vector<float> native_shared_gate_;  // [hidden] in its place, in native mode
};

}  // namespace godwit::nn
