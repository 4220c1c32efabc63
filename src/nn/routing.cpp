#include "nn/routing.h"

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/weight_store.h"

namespace godwit::nn {
namespace {

mx::array chosen_experts(const Routing& routing, const mx::array& scores) {
  const int tokens = scores.shape(0), k = routing.chosen;
  if (routing.choice == Routing::Choice::last)
    return mx::slice(mx::argpartition(scores, -k, -1), {0, routing.experts - k}, {tokens, routing.experts});
  return mx::slice(mx::argpartition(mx::negative(scores), k - 1, -1), {0, 0}, {tokens, k});
}

}  // namespace

Routed routed(const Routing& routing, const mx::array& scores) {
  const bool softmax_first = routing.softmax == Routing::Softmax::over_all;
  const mx::array values = softmax_first ? mx::softmax(scores, -1, routing.is_precise) : scores;
  const mx::array experts = chosen_experts(routing, values);
  mx::array weights = mx::take_along_axis(values, experts, -1);
  if (!softmax_first) weights = mx::softmax(weights, -1, routing.is_precise);
  if (routing.is_renormalized) weights = weights / mx::sum(weights, -1, /*keepdims=*/true);
  return {experts, weights};
}

mx::array weighted_sum(const mx::array& y, const mx::array& weights) {
  return mx::sum(y * mx::expand_dims(weights, -1), -2);
}

Router::Router(const checkpoint::WeightScope& scope, const Options& o)
    : routing_(o.routing), has_bias_(o.has_bias) {
  if (o.routing.chosen < 1 || o.routing.chosen > o.routing.experts)
    fail(ErrorCode::invalid_argument, "routing", "{}: {} of {} experts", scope.path(), o.routing.chosen,
         o.routing.experts);
  if (scope.store().native())
    native_ = (scope / o.projection).values(o.routing.experts, o.hidden);
  else
    projection_.emplace(scope / o.projection, o.hidden, o.routing.experts, o.has_bias);
  if (o.has_expert_scale) expert_scale_ = scope.dense("per_expert_scale", {o.routing.experts});
}

ops::RouterPlan Router::plan() const {
  if (has_bias_ || expert_scale_)
    fail(ErrorCode::unsupported, "routing", "native mode has no router with {}",
         has_bias_ ? "a bias" : "a scale of each expert");
  return {.experts = routing_.experts,
          .chosen = routing_.chosen,
          .weights = native_,
          .softmax_over_chosen = routing_.softmax == Routing::Softmax::over_chosen,
          .is_renormalized = routing_.is_renormalized,
          .ties = routing_.choice == Routing::Choice::last ? ops::Ties::higher_index : ops::Ties::lower_index};
}

Routed Router::operator()(const mx::array& x) const {
  Routed choice = routed(routing_, (*projection_)(x));
  if (expert_scale_) choice.weights = choice.weights * mx::take(*expert_scale_, choice.experts, 0);
  return choice;
}

}  // namespace godwit::nn
