#include "nn/head_norm.h"

#include <vector>

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/weight_store.h"

namespace godwit::nn {
namespace {

mx::array own_weights(const checkpoint::WeightScope& scope, int heads, int head_dim) {
  if (!(scope / "norms" / 0).has("weight")) return scope.dense("weight", {heads, head_dim});
  std::vector<mx::array> rows;
  for (int head = 0; head < heads; ++head) rows.push_back((scope / "norms" / head).dense("weight", {head_dim}));
  return mx::stack(rows, 0);
}

}  // namespace

HeadNorm::HeadNorm(const checkpoint::WeightScope& scope, int heads, int head_dim, const HeadNormOptions& options)
    : options_(options) {
  if (options.form != HeadNormForm::own) {
    const int dims = options.form == HeadNormForm::across ? heads * head_dim : head_dim;
    norm_.emplace(scope, NormOptions{.dims = dims, .eps = options.eps, .kind = options.kind, .gain = options.gain});
    return;
  }
  if (scope.store().native())
    fail(ErrorCode::unsupported, "attention", "{}: native mode has no norm with weights for each head", scope.path());
  GODWIT_CHECK(options.kind == NormKind::layer && options.gain == NormGain::weight, "{}: own weights of a norm of kind {}",
               scope.path(), static_cast<int>(options.kind));
  weight_ = own_weights(scope, heads, head_dim);
}

ops::NormPlan HeadNorm::plan() const {
  if (options_.form != HeadNormForm::shared || options_.after_rope)
    fail(ErrorCode::unsupported, "attention", "native mode normalises each head before its rotation only");
  return norm_->plan();
}

mx::array HeadNorm::operator()(const mx::array& x) const {
  if (options_.form == HeadNormForm::shared) return (*norm_)(x);
  if (options_.form == HeadNormForm::own)
    return *weight_ * mx::fast::layer_norm(x, std::nullopt, std::nullopt, static_cast<float>(options_.eps));
  const int tokens = x.shape(0);
  return mx::reshape((*norm_)(mx::reshape(x, {tokens, -1})), x.shape());
}

}  // namespace godwit::nn
