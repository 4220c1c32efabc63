// Qwen2 and Qwen2.5: the llama graph with biases on q, k and v alone. Truth: mlx_lm/models/qwen2.py.
#include "models/decoder.h"
#include "models/families.h"

namespace godwit::models {
namespace {

using checkpoint::Config;
using checkpoint::WeightScope;

bool tied(const Config& config) { return config.tie_word_embeddings.value_or(true); }

checkpoint::WeightRules rules(const Config& config) { return decoder_rules(config, tied(config)); }

// Configs name a sliding_window; the oracle reads every layer in full.
cache::StateNeeds needs(const Config& config) { return decoder_needs(config); }

std::unique_ptr<Model> make(const WeightScope& root, const Config& config) {
  nn::Attention::Options attention = attention_options(config);
  attention.qkv_bias = true;
  const nn::Rope rope(rope_options(config, &root));
  return std::make_unique<Decoder>(root, config, Decoder::Options{.tied = tied(config)},
                                   pre_norm_blocks(root, config, attention, rope, mlp_options(config)),
                                   needs(config));
}

}  // namespace

const Family qwen2 = {"qwen2", {}, rules, needs, make};

}  // namespace godwit::models
