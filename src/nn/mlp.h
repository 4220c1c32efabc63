// The dense feed-forward networks: down(activation(gate(x)) * up(x)), or down(activation(up(x))).
#pragma once

#include <optional>

#include "base/mx.h"
#include "checkpoint/weight_scope.h"
#include "nn/activations.h"
#include "nn/feed_forward.h"
#include "nn/linear.h"

namespace godwit::nn {

enum class MlpForm {
  gated,         // gate_proj, up_proj, down_proj
  gated_packed,  // gate_up_proj: all of the gate, then all of up; down_proj
  plain,         // up_proj, down_proj
};

class Mlp final : public FeedForward {
 public:
  struct Options {
    int hidden = 0;
    int intermediate = 0;
    MlpForm form = MlpForm::gated;
    Activation activation = Activation::silu;
    bool bias = false;
    std::optional<XieluScalars> xielu = {};  // absent: scope.act_fn.{alpha_p, alpha_n, beta, eps}
  };
  // Reads the projections of its form. A packed one is multiplied whole and split behind the product, as the oracle
  // does.
  Mlp(const checkpoint::WeightScope& scope, const Options& options);
  mx::array operator()(const mx::array& x) const override;

  bool is_native() const override { return first_.is_native() && (!up_ || up_->is_native()) && down_.is_native(); }
  FeedForwardPlan plan() const override { return dense_plan(); }
  ops::MlpPlan dense_plan() const;  // the same, as what it is

 private:
  mx::array activated(const mx::array& x) const;
  mx::array inner(const mx::array& x) const;

  Options options_;
  Linear first_;  // gate_proj, gate_up_proj or up_proj
  std::optional<Linear> up_;
  Linear down_;
  std::optional<XieluScalars> xielu_;
};

}  // namespace godwit::nn
