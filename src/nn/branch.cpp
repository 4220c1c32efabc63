#include "nn/branch.h"

#include <utility>

#include "base/error.h"
#include "base/mx_ops.h"

namespace godwit::nn {
namespace {

mx::array residual_sum(const mx::array& x, const mx::array& y, ResidualSum sum) {
  if (sum == ResidualSum::plain || x.dtype() != mx::float16) return x + y;
  const mx::array bound(65504.0f);
  const mx::array wide = mx::astype(x, mx::float32) + mx::astype(y, mx::float32);
  return mx::astype(mx::clip(wide, mx::negative(bound), bound), mx::float16);
}

mx::array begun(const mx::array& x, const BranchNorms& norms) { return norms.before ? (*norms.before)(x) : x; }

mx::array finished(const mx::array& x, const mx::array& inner, const BranchNorms& norms) {
  mx::array y = norms.after ? (*norms.after)(inner) : inner;
  if (norms.multiplier) y = y * scalar_like(*norms.multiplier, y);
  return residual_sum(x, y, norms.sum);
}

template <typename Plan>
std::shared_ptr<const Plan> with_norms(Plan plan, const BranchNorms& norms) {
  if (!norms.before || norms.multiplier)
    fail(ErrorCode::unsupported, "branch", "native mode has no residual branch {}",
         norms.multiplier ? "with a multiplier" : "without a norm before it");
  plan.before = norms.before->plan();
  if (norms.after) plan.after = norms.after->plan();
  return std::make_shared<const Plan>(std::move(plan));
}

mx::array native_branch(const mx::array& x, std::shared_ptr<const ops::AttentionPlan> plan, cache::LayerState& state) {
  return ops::attention_branch(x, std::move(plan), state.native_layer());
}

mx::array native_branch(const mx::array& x, std::shared_ptr<const ops::GatedDeltaPlan> plan, cache::LayerState& state) {
  return ops::gated_delta_branch(x, std::move(plan), state.native_layer());
}

}  // namespace

MixerBranch::MixerBranch(BranchNorms norms, std::unique_ptr<const Mixer> mixer)
    : norms_(std::move(norms)), mixer_(std::move(mixer)) {
  if (!mixer_->is_native()) return;
  std::visit(
      [&](auto plan) {
        native_ = [whole = with_norms(std::move(plan), norms_)](const mx::array& x, cache::LayerState& state) {
          return native_branch(x, whole, state);
        };
      },
      mixer_->plan());
}

mx::array MixerBranch::operator()(const mx::array& x, const cache::Step& step, cache::LayerState& state) const {
  if (native_) return native_(x, state);
  return finished(x, (*mixer_)(begun(x, norms_), step, state), norms_);
}

FeedForwardBranch::FeedForwardBranch(BranchNorms norms, std::unique_ptr<const FeedForward> feed_forward)
    : norms_(std::move(norms)), feed_forward_(std::move(feed_forward)) {
  if (!feed_forward_->is_native()) return;
  std::visit(
      [&](auto plan) {
        native_ = [whole = with_norms(std::move(plan), norms_)](const mx::array& x) { return ops::mlp_branch(x, whole); };
      },
      feed_forward_->plan());
}

mx::array FeedForwardBranch::operator()(const mx::array& x) const {
  if (native_) return native_(x);
  return finished(x, (*feed_forward_)(begun(x, norms_)), norms_);
}

}  // namespace godwit::nn
