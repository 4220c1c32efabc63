#include "nn/branch.h"

#include <utility>

#include "base/mx_ops.h"

namespace godwit::nn {
namespace {

mx::array residual_sum(const mx::array& x, const mx::array& y, ResidualSum sum) {
  if (sum == ResidualSum::plain || x.dtype() != mx::float16) return x + y;
  const mx::array bound(65504.0f);
  const mx::array wide = mx::astype(x, mx::float32) + mx::astype(y, mx::float32);
  return mx::astype(mx::clip(wide, mx::negative(bound), bound), mx::float16);
}

mx::array finished(const mx::array& x, const mx::array& inner, const BranchNorms& norms) {
  return residual_sum(x, norms.after ? (*norms.after)(inner) : inner, norms.sum);
}

template <typename Plan>
std::shared_ptr<const Plan> with_norms(Plan plan, const BranchNorms& norms) {
  plan.before = norms.before.plan();
  if (norms.after) plan.after = norms.after->plan();
  return std::make_shared<const Plan>(std::move(plan));
}

}  // namespace

AttentionBranch::AttentionBranch(BranchNorms norms, Attention attention)
    : norms_(std::move(norms)), attention_(std::move(attention)) {
  if (attention_.is_native()) native_ = with_norms(attention_.plan(), norms_);
}

mx::array AttentionBranch::operator()(const mx::array& x, const cache::Step& step,
                                      cache::LayerState& state) const {
  if (native_) return ops::attention_branch(x, native_, state.native());
  return finished(x, attention_(norms_.before(x), step, state), norms_);
}

MlpBranch::MlpBranch(BranchNorms norms, GatedMlp mlp) : norms_(std::move(norms)), mlp_(std::move(mlp)) {
  if (mlp_.is_native()) native_ = with_norms(mlp_.plan(), norms_);
}

mx::array MlpBranch::operator()(const mx::array& x) const {
  if (native_) return ops::mlp_branch(x, native_);
  return finished(x, mlp_(norms_.before(x)), norms_);
}

}  // namespace godwit::nn
