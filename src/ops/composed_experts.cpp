#include <fmt/format.h>

#include <limits>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"
#include "base/mx_ops.h"
#include "ops/composed_branches.h"

namespace godwit::ops {
namespace {

mx::array network(const mx::array& n, const GatedMatrices& matrices, kernels::Activation activation,
                  const std::string& name, Constants& constants) {
  const mx::array gate = composed_product(n, matrices.gate, name + ".gate", constants);
  const mx::array up = composed_product(n, matrices.up, name + ".up", constants);
  return composed_product(composed_gated(activation, gate, up), matrices.down, name + ".down", constants);
}

// Whether fewer than `chosen` scores of the row come before it. scores [tokens, experts]: bool, the same.
mx::array chosen_of(const mx::array& scores, const RouterPlan& router) {
  const int experts = scores.shape(1);
  const mx::array own = mx::expand_dims(scores, 2), other = mx::expand_dims(scores, 1);
  const mx::array index = mx::arange(experts), row = mx::expand_dims(index, 1);
  const mx::array wins_tie = router.ties == Ties::higher_index ? mx::greater(index, row) : mx::less(index, row);
  const mx::array before = mx::logical_or(mx::greater(other, own), mx::logical_and(mx::equal(other, own), wins_tie));
  return mx::less(mx::sum(mx::astype(before, mx::int32), 2), mx::array(checked_cast<int>(router.chosen, "experts")));
}

// The share of each expert, [tokens, experts].
mx::array shares_of(const mx::array& n, const RouterPlan& router, Constants& constants) {
  const mx::array scores = composed_dots(n, router.weights, "router", constants);
  const mx::array is_chosen = chosen_of(mx::stop_gradient(scores), router), zero = scalar_like(0, scores);
  const mx::array lowest = scalar_like(-std::numeric_limits<float>::infinity(), scores);
  const mx::array shares = router.softmax_over_chosen ? mx::softmax(mx::where(is_chosen, scores, lowest), -1)
                                                      : mx::where(is_chosen, mx::softmax(scores, -1), zero);
  return router.is_renormalized ? shares / mx::sum(shares, -1, /*keepdims=*/true) : shares;
}

}  // namespace

mx::array composed_experts(const mx::array& x, const SparseMlpPlan& plan, Constants& constants) {
  const mx::array n = composed_norm(x, plan.before, "before", constants);
  const std::vector<mx::array> shares =
      mx::split(shares_of(n, plan.router, constants), static_cast<int>(plan.experts.size()), 1);
  mx::array sum = mx::zeros_like(x);
  for (std::size_t e = 0; e < plan.experts.size(); ++e)
    sum = sum + shares[e] * network(n, plan.experts[e], plan.activation, fmt::format("experts.{}", e), constants);
  if (plan.shared) {
    const mx::array share = mx::sigmoid(composed_dots(n, plan.shared->gate, "shared", constants));
    sum = sum + share * network(n, plan.shared->matrices, plan.activation, "shared", constants);
  }
  return x + (plan.after ? composed_norm(sum, *plan.after, "after", constants) : sum);
}

}  // namespace godwit::ops
