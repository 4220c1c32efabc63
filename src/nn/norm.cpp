#include "nn/norm.h"

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/weight_store.h"
#include "nn/native_values.h"

namespace godwit::nn {
namespace {

std::optional<mx::array> gain_of(const checkpoint::WeightScope& scope, const NormOptions& options) {
  if (options.gain == NormGain::none) return std::nullopt;
  const mx::array w = scope.dense("weight", {options.dims});
  if (options.gain == NormGain::weight || scope.store().norms_include_one()) return w;
  return scalar_like(1.0, w) + w;
}

}  // namespace

Norm::Norm(const checkpoint::WeightScope& scope, const NormOptions& options)
    : kind_(options.kind), weight_(gain_of(scope, options)), eps_(static_cast<float>(options.eps)) {
  if (options.bias) bias_ = scope.dense("bias", {options.dims});
  if (scope.store().native()) native_ = std::make_shared<ops::NormPlan>(plan());
}

ops::NormPlan Norm::plan() const {
  if (kind_ != NormKind::rms || !weight_)
    fail(ErrorCode::unsupported, "norm", "native mode has no {}",
         kind_ == NormKind::layer ? "layer norm" : "norm without a weight");
  return {native_values(*weight_), eps_};
}

mx::array Norm::operator()(const mx::array& x) const {
  if (native_) return ops::native_norm(x, native_);
  return kind_ == NormKind::rms ? mx::fast::rms_norm(x, weight_, eps_)
                                : mx::fast::layer_norm(x, weight_, bias_, eps_);
}

}  // namespace godwit::nn
