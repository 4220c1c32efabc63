// Qwen2 and Qwen2.5: the llama graph with biases on q, k and v alone. Truth: mlx_lm/models/qwen2.py.
#include <utility>

#include "models/decoder.h"
#include "models/families.h"

namespace godwit::models {
namespace {

using checkpoint::Config;
using checkpoint::WeightScope;

bool tied(const Config& config) { return config.tie_word_embeddings.value_or(true); }

checkpoint::WeightRules rules(const Config& config) { return decoder_rules(config, tied(config)); }

std::unique_ptr<Model> make(const WeightScope& root, const Config& config) {
  nn::Attention::Options attention = attention_options(config);
  attention.qkv_bias = true;
  const nn::Rope rope(rope_options(config, &root));

  std::vector<Block> blocks;
  for (int i = 0; i < config.layers; ++i) {
    const WeightScope layer = layer_scope(root, i);
    blocks.push_back(pre_norm_block(layer, config, nn::Attention(layer / "self_attn", attention, rope),
                                    mlp_options(config)));
  }
  // Configs name a sliding_window; the oracle reads every layer in full.
  const std::vector<std::optional<int>> windows(blocks.size());
  return std::make_unique<Decoder>(root, config, Decoder::Options{.tied = tied(config)}, std::move(blocks),
                                   windows);
}

}  // namespace

const Family qwen2 = {"qwen2", {}, rules, make};

}  // namespace godwit::models
