// The gated delta net: a recurrence over a matrix per value head in place of attention (Qwen3-Next, Qwen3.5).
// Projections -> convolution, gates and recurrence in the layer's state -> norm gated by z -> output
// projection.
#pragma once

#include <memory>
#include <optional>

#include "base/mx.h"
#include "cache/layer_need.h"
#include "cache/state.h"
#include "checkpoint/weight_scope.h"
#include "nn/mixer.h"

namespace godwit::nn {

class GatedDeltaMixer final : public Mixer {
 public:
  struct Options {
    int hidden = 0;
    int key_heads = 0;
    int value_heads =
        0;  // a multiple of key_heads; value head h reads key head h / (value_heads / key_heads)
    int key_dim = 0;
    int value_dim = 0;
    int kernel = 0;       // of the convolution
    double norm_eps = 0;  // of the output norm
    // Which projections are missed in a file that has neither form: grouped by key head (Qwen3-Next), or
    // flat.
    bool is_grouped = false;
    // GGUF: the file's value head p is head (p % key_heads) * (value_heads / key_heads) + p / key_heads here.
    bool has_tiled_values = false;
    bool a_log_is_rate = false;  // GGUF: A_log holds -exp(A_log)

    cache::RecurrentNeed need() const;
  };

  // Reads scope.{in_proj_qkv, in_proj_z} or in_proj_qkvz, scope.{in_proj_a, in_proj_b} or in_proj_ba,
  // conv1d.weight [channels, kernel] with or without a unit axis, A_log, dt_bias, norm.weight [value_dim] and
  // out_proj. In native mode tensors stay in the file's order.
  GatedDeltaMixer(const checkpoint::WeightScope& scope, const Options& options);
  ~GatedDeltaMixer() override;

  mx::array operator()(const mx::array& x, const cache::Step& step, cache::LayerState& state) const override;
  bool is_native() const override { return native_.has_value(); }
  MixerPlan plan() const override { return native_.value(); }

 private:
  class Composed;
  std::unique_ptr<const Composed> composed_;   // `reference` mode
  std::optional<ops::GatedDeltaPlan> native_;  // absent where a part is missing: the audit names it
};

}  // namespace godwit::nn
