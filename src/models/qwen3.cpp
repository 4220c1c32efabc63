// Qwen3 dense: the llama graph with an RMS norm on each head of q and k, and no bias anywhere.
// Truth: mlx_lm/models/qwen3.py.
#include <utility>

#include "base/error.h"
#include "models/decoder.h"
#include "models/families.h"

namespace godwit::models {
namespace {

using checkpoint::Config;
using checkpoint::WeightScope;

// Both keys are required: heads times head_dim may exceed the hidden size, and releases differ in the head.
bool tied(const Config& config) {
  if (!config.tie_word_embeddings)
    fail(ErrorCode::corrupt_file, "qwen3", "{}: the key tie_word_embeddings is missing", config.origin);
  if (!config.from_gguf) config.integer("head_dim");
  return *config.tie_word_embeddings;
}

checkpoint::WeightRules rules(const Config& config) { return decoder_rules(config, tied(config)); }

std::unique_ptr<Model> make(const WeightScope& root, const Config& config) {
  const bool is_tied = tied(config);
  nn::Attention::Options attention = attention_options(config);
  attention.qk_norm = nn::NormGain::weight;
  nn::Rope::Options positions = rope_options(config, &root);
  positions.traditional = false;
  const nn::Rope rope(positions);

  std::vector<Block> blocks;
  for (int i = 0; i < config.layers; ++i) {
    const WeightScope layer = layer_scope(root, i);
    blocks.push_back(pre_norm_block(layer, config, nn::Attention(layer / "self_attn", attention, rope),
                                    mlp_options(config)));
  }
  const std::vector<std::optional<int>> windows(blocks.size());
  return std::make_unique<Decoder>(root, config, Decoder::Options{.tied = is_tied}, std::move(blocks),
                                   windows);
}

}  // namespace

const Family qwen3 = {"qwen3", {}, rules, make};

}  // namespace godwit::models
