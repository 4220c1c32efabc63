#include "nn/mlp.h"

#include "base/error.h"
#include "base/mx_ops.h"

namespace godwit::nn {

GatedMlp::GatedMlp(const checkpoint::WeightScope& scope, const Options& o)
    : gate_(scope / "gate_proj", o.hidden, o.intermediate, o.bias),
      up_(scope / "up_proj", o.hidden, o.intermediate, o.bias),
      down_(scope / "down_proj", o.intermediate, o.hidden, o.bias),
      activation_(o.activation) {}

ops::MlpPlan GatedMlp::plan() const {
  if (activation_ == Activation::gelu)
    fail(ErrorCode::unsupported, "mlp", "native mode has no gate by the exact gelu");
  return {.activation =
              activation_ == Activation::silu ? kernels::Activation::silu : kernels::Activation::gelu_tanh,
          .before = {},
          .gate = gate_.native(),
          .up = up_.native(),
          .down = down_.native(),
          .after = {}};
}

mx::array GatedMlp::operator()(const mx::array& x) const {
  return down_(activate(activation_, gate_(x)) * up_(x));
}

}  // namespace godwit::nn
