#include "nn/mlp.h"

#include <vector>

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/weight_store.h"

namespace godwit::nn {
namespace {

Linear first_of(const checkpoint::WeightScope& scope, const Mlp::Options& o) {
  const char* name = o.form == MlpForm::gated ? "gate_proj" : o.form == MlpForm::plain ? "up_proj" : "gate_up_proj";
  return Linear(scope / name, o.hidden, o.form == MlpForm::gated_packed ? 2 * o.intermediate : o.intermediate, o.bias);
}

// A scalar of either form that checkpoints have: without axes or with one of length 1.
mx::array scalar_of(const checkpoint::WeightScope& scope, std::string_view leaf) {
  const bool is_listed = scope.has(leaf) && !scope.store().entry((scope / leaf).path()).shape.empty();
  return mx::reshape(scope.dense(leaf, is_listed ? mx::Shape{1} : mx::Shape{}), mx::Shape{});
}

std::optional<XieluScalars> xielu_of(const checkpoint::WeightScope& scope, const Mlp::Options& o) {
  if (o.activation != Activation::xielu) return std::nullopt;
  if (o.xielu) return o.xielu;
  return XieluScalars{.positive = scalar_of(scope, "alpha_p"),
                      .negative = scalar_of(scope, "alpha_n"),
                      .beta = scalar_of(scope, "beta"),
                      .epsilon = scalar_of(scope, "eps")};
}

}  // namespace

Mlp::Mlp(const checkpoint::WeightScope& scope, const Options& o)
    : options_(o),
      first_(first_of(scope, o)),
      down_(scope / "down_proj", o.intermediate, o.hidden, o.bias),
      xielu_(xielu_of(scope / "act_fn", o)) {
  if (o.form == MlpForm::gated) up_.emplace(scope / "up_proj", o.hidden, o.intermediate, o.bias);
}

ops::MlpPlan Mlp::dense_plan() const {
  const auto activation = native_activation(options_.activation);
  if (options_.form != MlpForm::gated || !activation)
    fail(ErrorCode::unsupported, "mlp", "native mode has no {} {}",
         options_.form == MlpForm::gated          ? "gate by"
         : options_.form == MlpForm::gated_packed ? "packed gate by"
                                                  : "MLP without a gate, by",
         activation_name(options_.activation));
  return {.activation = *activation,
          .before = {},
          .gate = first_.native(),
          .up = up_->native(),
          .down = down_.native(),
          .after = {}};
}

mx::array Mlp::activated(const mx::array& x) const {
  return xielu_ ? xielu(x, *xielu_) : activate(options_.activation, x);
}

mx::array Mlp::inner(const mx::array& x) const {
  const mx::array y = first_(x);
  if (options_.form == MlpForm::plain) return activated(y);
  if (options_.form == MlpForm::gated) return activated(y) * (*up_)(x);
  const std::vector<mx::array> halves = mx::split(y, 2, -1);
  return activated(halves[0]) * halves[1];
}

mx::array Mlp::operator()(const mx::array& x) const { return down_(inner(x)); }

}  // namespace godwit::nn
