// Gemma 3 text: sandwich norms with gain 1 + w, q/k norms, GeGLU, embeddings times sqrt(hidden), and every
// n-th layer full while the others slide with a rotary base of their own. Truth:
// mlx_lm/models/gemma3_text.py.
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/mx_ops.h"
#include "models/decoder.h"
#include "models/families.h"

namespace godwit::models {
namespace {

using checkpoint::Config;
using checkpoint::WeightScope;

constexpr auto kGain = nn::NormGain::one_plus_weight;

// The residual sum; in f16 it is formed in f32 and clipped, because the stream of this family leaves f16's
// range.
mx::array add_clipped(const mx::array& x, const mx::array& y) {
  if (x.dtype() != mx::float16) return x + y;
  const mx::array bound(65504.0f);
  const mx::array sum = mx::astype(x, mx::float32) + mx::astype(y, mx::float32);
  return mx::astype(mx::clip(sum, mx::negative(bound), bound), mx::float16);
}

class SandwichBlock final : public Block {
 public:
  SandwichBlock(const WeightScope& scope, const Config& config, nn::Attention attention)
      : before_attention_(scope / "input_layernorm", config.hidden, config.norm_eps, kGain),
        after_attention_(scope / "post_attention_layernorm", config.hidden, config.norm_eps, kGain),
        before_mlp_(scope / "pre_feedforward_layernorm", config.hidden, config.norm_eps, kGain),
        after_mlp_(scope / "post_feedforward_layernorm", config.hidden, config.norm_eps, kGain),
        attention_(std::move(attention)),
        mlp_(scope / "mlp", {.hidden = config.hidden,
                             .intermediate = config.intermediate,
                             .activation = nn::Activation::gelu_approx}) {}

  mx::array forward(const mx::array& x, const cache::Step& step, cache::LayerState& state) const override {
    const mx::array h = add_clipped(x, after_attention_(attention_(before_attention_(x), step, state)));
    return add_clipped(h, after_mlp_(mlp_(before_mlp_(h))));
  }

 private:
  nn::RmsNorm before_attention_;
  nn::RmsNorm after_attention_;
  nn::RmsNorm before_mlp_;
  nn::RmsNorm after_mlp_;
  nn::Attention attention_;
  nn::GatedMlp mlp_;
};

// The window of each layer: none on every n-th.
std::vector<std::optional<int>> windows_of(const Config& config) {
  if (!config.sliding_window || !config.sliding_window_pattern)
    fail(ErrorCode::corrupt_file, "gemma3_text", "{}: sliding_window or sliding_window_pattern is missing",
         config.origin);
  std::vector<std::optional<int>> windows;
  for (int i = 0; i < config.layers; ++i)
    windows.push_back((i + 1) % *config.sliding_window_pattern == 0 ? std::nullopt : config.sliding_window);
  return windows;
}

nn::Rope::Options sliding_rope(const Config& config) {
  nn::Rope::Options options;
  options.dims = config.head_dim;
  options.base = config.rope_local_theta.value_or(10000.0);
  return options;
}

// √hidden is rounded to bf16 whatever the model's dtype.
mx::array embedding_scale(const Config& config) { return mx::array(std::sqrt(config.hidden), mx::bfloat16); }

// Nothing in the config ties the head: a file without lm_head is tied.
checkpoint::WeightRules rules(const Config& config) {
  static_cast<void>(windows_of(config));
  return decoder_rules(config, /*tied=*/false, "gelu_pytorch_tanh");
}

std::unique_ptr<Model> make(const WeightScope& root, const Config& config) {
  const std::vector<std::optional<int>> windows = windows_of(config);
  nn::Attention::Options attention = attention_options(config);
  attention.scale = std::pow(config.query_pre_attn_scalar.value_or(config.head_dim), -0.5);
  attention.qk_norm = kGain;
  nn::Rope::Options positions = rope_options(config, &root);
  positions.traditional = false;
  const nn::Rope full(positions);
  const nn::Rope sliding(sliding_rope(config));

  std::vector<std::unique_ptr<Block>> blocks;
  for (const std::optional<int>& window : windows) {
    const WeightScope layer = layer_scope(root, static_cast<int>(blocks.size()));
    blocks.push_back(std::make_unique<SandwichBlock>(
        layer, config, nn::Attention(layer / "self_attn", attention, window ? sliding : full)));
  }
  Decoder::Options options = {.tied = !(root / "lm_head").has("weight"),
                              .final_norm = kGain,
                              .embedding_scale = embedding_scale(config)};
  return std::make_unique<Decoder>(root, config, std::move(options), std::move(blocks), windows);
}

}  // namespace

const Family gemma3_text = {"gemma3_text", {}, rules, make};

}  // namespace godwit::models
