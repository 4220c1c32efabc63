// Qwen3 dense: the llama graph with an RMS norm on each head of q and k, and no bias anywhere.
// Truth: mlx_lm/models/qwen3.py.
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

cache::StateNeeds needs(const Config& config) { return decoder_needs(config); }

std::unique_ptr<Model> make(const WeightScope& root, const Config& config) {
  nn::Attention::Options attention = attention_options(config);
  attention.qk_norm = nn::NormGain::weight;
  nn::Rope::Options positions = rope_options(config, &root);
  positions.traditional = false;
  const nn::Rope rope(positions);
  return std::make_unique<Decoder>(root, config, Decoder::Options{.tied = tied(config)},
                                   pre_norm_blocks(root, config, attention, rope, mlp_options(config)),
                                   needs(config));
}

}  // namespace

const Family qwen3 = {"qwen3", {}, rules, needs, make};

}  // namespace godwit::models
