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

Block sandwich_block(const WeightScope& scope, const Config& config, nn::Attention attention) {
  const auto norm = [&](const char* name) {
    return nn::RmsNorm(scope / name, config.hidden, config.norm_eps, kGain);
  };
  const nn::GatedMlp::Options mlp = {.hidden = config.hidden,
                                     .intermediate = config.intermediate,
                                     .activation = nn::Activation::gelu_approx};
  constexpr auto kSum = nn::ResidualSum::clipped_f16;
  return {nn::AttentionBranch({norm("input_layernorm"), norm("post_attention_layernorm"), kSum},
                              std::move(attention)),
          nn::MlpBranch({norm("pre_feedforward_layernorm"), norm("post_feedforward_layernorm"), kSum},
                        nn::GatedMlp(scope / "mlp", mlp))};
}

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

cache::StateNeeds needs(const Config& config) { return decoder_needs(config, windows_of(config)); }

std::unique_ptr<Model> make(const WeightScope& root, const Config& config) {
  const std::vector<std::optional<int>> windows = windows_of(config);
  nn::Attention::Options attention = attention_options(config);
  attention.scale = std::pow(config.query_pre_attn_scalar.value_or(config.head_dim), -0.5);
  attention.qk_norm = kGain;
  nn::Rope::Options positions = rope_options(config, &root);
  positions.traditional = false;
  const nn::Rope full(positions);
  const nn::Rope sliding(sliding_rope(config));

  std::vector<Block> blocks;
  for (const std::optional<int>& window : windows) {
    const WeightScope layer = layer_scope(root, static_cast<int>(blocks.size()));
    blocks.push_back(sandwich_block(layer, config,
                                    nn::Attention(layer / "self_attn", attention, window ? sliding : full)));
  }
  Decoder::Options options = {.tied = !(root / "lm_head").has("weight"),
                              .final_norm = kGain,
                              .embedding_scale = embedding_scale(config)};
  return std::make_unique<Decoder>(root, config, std::move(options), std::move(blocks), needs(config));
}

}  // namespace

const Family gemma3_text = {"gemma3_text", {}, rules, needs, make};

}  // namespace godwit::models
