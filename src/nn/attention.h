// Multi-head attention with grouped keys over a layer's state:
// project -> (q/k norm) -> rope -> store and attend -> (gate) -> output projection.
#pragma once

#include <optional>

#include "base/mx.h"
#include "checkpoint/weight_scope.h"
#include "nn/head_norm.h"
#include "nn/linear.h"
#include "nn/mixer.h"
#include "nn/qkv.h"
#include "nn/rope.h"

namespace godwit::nn {

// Where queries are widened to f32 in front of the scores; the values' dtype comes back behind them.
enum class Widened { never, always, from_f16 };

// Queries grow with their position p: times 1 + beta ln(1 + floor(p / length)), formed in f32 and cast.
struct PositionGain {
  double beta = 0;
  int length = 0;
};

class Attention final : public Mixer {
 public:
  struct Options {
    int hidden = 0;
    int heads = 0;
    int kv_heads = 0;
    int head_dim = 0;
    double scale = 1.0;
    bool qkv_bias = false;
    bool output_bias = false;
    QkvPacking packing = QkvPacking::separate;
    std::optional<HeadNormOptions> qk_norm;
    Widened widened = Widened::never;
    std::optional<PositionGain> position_gain;
    float soft_cap = 0.0f;
  };
  // Reads what Qkv reads, scope.o_proj and, with a q/k norm, scope.{q_norm, k_norm}. Without a rope, positions are not
  // encoded.
  Attention(const checkpoint::WeightScope& scope, const Options& options, std::optional<Rope> rope);

  mx::array operator()(const mx::array& x, const cache::Step& step, cache::LayerState& state) const override;
  bool is_native() const override { return qkv_.is_native() && o_.is_native(); }
  MixerPlan plan() const override;

 private:
  mx::array placed(const mx::array& x, const std::optional<HeadNorm>& norm, const cache::Step& step) const;
  mx::array grown(const mx::array& q, const cache::Step& step) const;

  Options options_;
  Qkv qkv_;
  Linear o_;
  std::optional<HeadNorm> q_norm_;
  std::optional<HeadNorm> k_norm_;
  std::optional<Rope> rope_;
};

}  // namespace godwit::nn
