// Attention of Gemma 4: norms on queries, keys and, without a weight, values; scores that nothing scales;
// layers whose values are the raw key projection, and layers that attend to the keys and values of another
// one.
#pragma once

#include <optional>

#include "nn/linear.h"
#include "nn/mixer.h"
#include "nn/norm.h"
#include "nn/rope.h"

namespace godwit::models {

class Gemma4Attention final : public nn::Mixer {
 public:
  struct Options {
    int hidden = 0;
    int heads = 0;
    int kv_heads = 0;
    int head_dim = 0;
    double eps = 0;
    bool owns_keys = true;         // else `state` is the donor's, whose span this step has stored already
    bool keys_are_values = false;  // k_proj gives both
  };
  // Reads scope.{q_proj, o_proj, q_norm} and, of a layer that owns keys, scope.{k_proj, k_norm} and v_proj.
  Gemma4Attention(const checkpoint::WeightScope& scope, const Options& options, nn::Rope rope);

  mx::array operator()(const mx::array& x, const cache::Step& step, cache::LayerState& state) const override;
  bool is_native() const override { return o_.is_native(); }
  nn::MixerPlan plan() const override;  // Error{unsupported}

 private:
  mx::array heads_of(const mx::array& y, int heads) const;  // [tokens, heads, head_dim]

  Options options_;
  nn::Rope rope_;
  nn::Linear q_, o_;
  nn::Norm q_norm_;
  std::optional<nn::Linear> k_, v_;
  std::optional<nn::Norm> k_norm_, v_norm_;
};

}  // namespace godwit::models
