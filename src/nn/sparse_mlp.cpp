#include "nn/sparse_mlp.h"

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/weight_store.h"

namespace godwit::nn {

SparseMlp::SparseMlp(const checkpoint::WeightScope& scope, const Options& o)
    : router_(scope, o.router), experts_(scope, o.experts), casts_sum_(o.casts_sum) {
  if (!o.shared) return;
  shared_.emplace(scope / "shared_expert", *o.shared);
  const checkpoint::WeightScope gate = scope / "shared_expert_gate";
  if (scope.store().native())
    native_shared_gate_ = gate.values(1, o.shared->hidden);
  else
    shared_gate_.emplace(gate, o.shared->hidden, 1);
}

ops::SharedExpert SparseMlp::native_shared() const {
  const ops::MlpPlan mlp = shared_->dense_plan();
  if (mlp.activation != native_activation(experts_.activation()) ||
      !(mlp.gate.bias.empty() && mlp.up.bias.empty() && mlp.down.bias.empty()))
    fail(ErrorCode::unsupported, "experts", "native mode has no shared expert with biases or an activation of its own");
  return {.matrices = {mlp.gate.matrix, mlp.up.matrix, mlp.down.matrix}, .gate = native_shared_gate_};
}

FeedForwardPlan SparseMlp::plan() const {
  const auto activation = native_activation(experts_.activation());
  if (!activation)
    fail(ErrorCode::unsupported, "experts", "native mode has no experts with a gate by {}",
         activation_name(experts_.activation()));
  ops::SparseMlpPlan plan{.activation = *activation,
                          .before = {},
                          .router = router_.plan(),
                          .experts = experts_.native(),
                          .shared = {},
                          .after = {}};
  if (shared_) plan.shared = native_shared();
  return plan;
}

mx::array SparseMlp::operator()(const mx::array& x) const {
  const Routed choice = router_(x);
  const mx::array each = experts_(x, choice.experts);
  mx::array y = weighted_sum(each, choice.weights);
  if (casts_sum_) y = mx::astype(y, each.dtype());
  if (!shared_) return y;
  return y + mx::sigmoid((*shared_gate_)(x)) * (*shared_)(x);
}

}  // namespace godwit::nn
