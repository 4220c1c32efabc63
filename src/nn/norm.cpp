#include "nn/norm.h"

#include "base/mx_ops.h"
#include "checkpoint/weight_store.h"
#include "nn/native_values.h"

namespace godwit::nn {
namespace {

mx::array gain_of(const checkpoint::WeightScope& scope, int dims, NormGain gain) {
  const mx::array w = scope.dense("weight", {dims});
  if (gain == NormGain::weight || scope.store().norms_include_one()) return w;
  return scalar_like(1.0, w) + w;
}

}  // namespace

RmsNorm::RmsNorm(const checkpoint::WeightScope& scope, int dims, double eps, NormGain gain)
    : weight_(gain_of(scope, dims, gain)), eps_(static_cast<float>(eps)) {
  if (scope.store().native()) native_ = std::make_shared<ops::NormPlan>(plan());
}

ops::NormPlan RmsNorm::plan() const { return {native_values(weight_), eps_}; }

mx::array RmsNorm::operator()(const mx::array& x) const {
  return native_ ? ops::native_norm(x, native_) : mx::fast::rms_norm(x, weight_, eps_);
}

LayerNorm::LayerNorm(const checkpoint::WeightScope& scope, int dims, double eps, bool bias)
    : weight_(scope.dense("weight", {dims})), eps_(static_cast<float>(eps)) {
  if (bias) bias_ = scope.dense("bias", {dims});
}

mx::array LayerNorm::operator()(const mx::array& x) const {
  return mx::fast::layer_norm(x, weight_, bias_, eps_);
}

}  // namespace godwit::nn
