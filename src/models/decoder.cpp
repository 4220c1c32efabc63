#include "models/decoder.h"

#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/weight_store.h"

namespace godwit::models {
namespace {

using checkpoint::Config;
using checkpoint::WeightScope;

// A GGUF file holds no activation dtype: it computes in f32. Every other checkpoint runs in the dtypes it
// has.
std::optional<mx::Dtype> activation_dtype(const Config& config) {
  return config.from_gguf ? std::optional(mx::float32) : std::nullopt;
}

Block pre_norm_block(const WeightScope& scope, const Config& config, nn::Attention attention,
                     const nn::GatedMlp::Options& mlp) {
  const auto norm = [&](const char* name) {
    return nn::RmsNorm(scope / name, config.hidden, config.norm_eps);
  };
  return {nn::AttentionBranch({norm("input_layernorm")}, std::move(attention)),
          nn::MlpBranch({norm("post_attention_layernorm")}, nn::GatedMlp(scope / "mlp", mlp))};
}

}  // namespace

std::vector<Block> pre_norm_blocks(const WeightScope& root, const Config& config,
                                   const nn::Attention::Options& attention, const nn::Rope& rope,
                                   const nn::GatedMlp::Options& mlp) {
  std::vector<Block> blocks;
  for (int i = 0; i < config.layers; ++i) {
    const WeightScope layer = layer_scope(root, i);
    blocks.push_back(pre_norm_block(layer, config, nn::Attention(layer / "self_attn", attention, rope), mlp));
  }
  return blocks;
}

Decoder::Decoder(const WeightScope& root, const Config& config, Options options, std::vector<Block> blocks,
                 cache::StateNeeds needs)
    : embedding_(root / "model.embed_tokens", config.vocabulary, config.hidden, activation_dtype(config),
                 std::move(options.embedding_scale)),
      blocks_(std::move(blocks)),
      norm_(root / "model.norm", config.hidden, config.norm_eps, options.final_norm),
      head_(options.tied ? embedding_.as_linear()
                         : nn::Linear(root / "lm_head", config.hidden, config.vocabulary)),
      needs_(std::move(needs)) {
  GODWIT_CHECK(blocks_.size() == needs_.size(), "{} blocks, {} needs", blocks_.size(), needs_.size());
  for (cache::LayerNeed& need : needs_) need.element_bytes = embedding_.element_bytes();
}

mx::array Decoder::hidden(const mx::array& tokens, cache::Step& step) const {
  mx::array h = embedding_(tokens);
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    h = blocks_[i].forward(h, step, step.layer(static_cast<int>(i)));
  return norm_(h);
}

cache::StateNeeds decoder_needs(const Config& config, const std::vector<std::optional<int>>& windows) {
  cache::StateNeeds needs(static_cast<std::size_t>(config.layers));
  GODWIT_CHECK(windows.empty() || windows.size() == needs.size(), "{} windows, {} layers", windows.size(),
               needs.size());
  for (std::size_t i = 0; i < needs.size(); ++i) {
    cache::LayerNeed& need = needs[i];
    need.kv_heads = config.kv_heads;
    need.key_dim = need.value_dim = config.head_dim;
    if (windows.empty() || !windows[i]) continue;
    need.window = cache::WindowKind::sliding;
    need.window_size = *windows[i];
  }
  return needs;
}

WeightScope layer_scope(const WeightScope& root, int index) { return root / "model.layers" / index; }

nn::Attention::Options attention_options(const Config& config) {
  nn::Attention::Options options;
  options.hidden = config.hidden;
  options.heads = config.heads;
  options.kv_heads = config.kv_heads;
  options.head_dim = config.head_dim;
  options.scale = std::pow(config.head_dim, -0.5);
  options.norm_eps = config.norm_eps;
  return options;
}

nn::GatedMlp::Options mlp_options(const Config& config) {
  return {.hidden = config.hidden, .intermediate = config.intermediate};
}

nn::Rope::Options rope_options(const Config& config, const WeightScope* root) {
  nn::Rope::Options options;
  // mlx-lm's families here turn the whole head; a GGUF file says how much of it turns.
  options.dims = config.from_gguf
                     ? static_cast<int>(std::lround(config.head_dim * config.partial_rotary_factor))
                     : config.head_dim;
  options.base = config.rope_theta;
  options.traditional = config.rope_traditional;
  options.scaling = config.rope_scaling;
  options.max_positions = config.max_position_embeddings;
  options.proportional_part = config.partial_rotary_factor;
  if (config.from_gguf && root)
    options.period_factors = (*root / "rope_freqs").dense_if_present("weight", {options.dims / 2});
  return options;
}

checkpoint::WeightRules decoder_rules(const Config& config, bool tied, std::string_view activation) {
  const std::string& named = config.hidden_act;
  const bool is_own = named.empty() || named == activation || (named == "swish" && activation == "silu");
  if (!is_own)
    fail(ErrorCode::unsupported, "models", "{}: hidden_act is '{}', the graph of {} has {}", config.origin,
         named, config.model_type, activation);
  try {
    static_cast<void>(nn::Rope(rope_options(config)));
  } catch (const Error& error) {
    throw Error(error.code(), config.origin, error.what());
  }
  checkpoint::WeightRules rules;
  rules.drop = {"rotary_emb.inv_freq"};
  if (tied) rules.drop.emplace_back("lm_head.");
  return rules;
}

}  // namespace godwit::models
