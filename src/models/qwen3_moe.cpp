// Qwen3-MoE: Qwen3's attention, and experts in place of the MLP in the layers that the config names.
// Truth: mlx_lm/models/qwen3_moe.py. It ignores rope_scaling; so does this graph, and says so.
#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "models/dense_experts.h"
#include "models/families.h"
#include "models/qwen_layers.h"
#include "nn/attention.h"

namespace godwit::models {
namespace {

using checkpoint::Config;
using checkpoint::WeightScope;

constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "qwen3moe", .names = kGgufExpertNames, .complete = complete_experts}}};
constexpr checkpoint::Dialect kDialect = {.model_type = "qwen3_moe", .gguf = kGguf};

nn::SparseMlp::Options experts_of(const Config& config) {
  nn::SparseMlp::Options options = qwen_experts(config, config.boolean("norm_topk_prob"), false);
  options.casts_sum = true;
  if (config.from_gguf) options.experts.names = nn::SwitchGlu::fused_names("switch_mlp");
  return options;
}

nn::Attention::Options attention_of(const Config& config) {
  nn::Attention::Options options;
  options.hidden = config.hidden;
  options.heads = config.heads;
  options.kv_heads = config.kv_heads;
  options.head_dim = config.head_dim;
  options.scale = std::pow(config.head_dim, -0.5);
  options.qk_norm = nn::HeadNormOptions{.eps = config.norm_eps};
  return options;
}

nn::Rope rope_of(const Config& config) {
  nn::Rope::Options options;
  options.dims = config.head_dim;
  options.base = config.rope_theta;
  return nn::Rope(options);
}

std::vector<std::string> warnings_of(const Config& config) {
  if (!config.rope_scaling || config.rope_scaling->type == "default") return {};
  return {fmt::format("{}: rope scaling of type '{}' is ignored, as mlx-lm ignores it for qwen3_moe",
                      config.origin, config.rope_scaling->type)};
}

checkpoint::WeightRules rules(const Config& config) {
  // Keys without a default in the oracle.
  config.boolean("tie_word_embeddings");
  if (!config.from_gguf) config.integer("head_dim");
  check_silu(config);
  static_cast<void>(experts_of(config));
  static_cast<void>(is_sparse_layer(config, 0));
  checkpoint::WeightRules rules{.drop = {"rotary_emb.inv_freq"}, .rename = {}};
  if (*config.tie_word_embeddings) rules.drop.emplace_back("lm_head.");
  return rules;
}

cache::StateNeeds needs(const Config& config) { return decoder_needs(config); }

std::unique_ptr<Model> make(const WeightScope& root, const Config& config) {
  const nn::SparseMlp::Options experts = experts_of(config);
  const nn::Rope rope = rope_of(config);
  const nn::NormOptions norm = {.dims = config.hidden, .eps = config.norm_eps};
  Blocks blocks;
  for (int i = 0; i < config.layers; ++i) {
    const WeightScope layer = layer_scope(root, i);
    blocks.push_back(pre_norm_block(
        layer, norm, std::make_unique<const nn::Attention>(layer / "self_attn", attention_of(config), rope),
        qwen_feed_forward(layer, config, is_sparse_layer(config, i) ? &experts : nullptr)));
  }
  Decoder::Options options = {
      .norm = norm, .head = {.tied = *config.tie_word_embeddings}, .warnings = warnings_of(config)};
  return std::make_unique<Decoder>(root, config, std::move(options), std::move(blocks), needs(config));
}

}  // namespace

const Family qwen3_moe = measured_in_the_median_token(
    {.id = "qwen3_moe", .dialect = &kDialect, .rules = rules, .needs = needs, .make = make, .lesser = kDenseExperts});

}  // namespace godwit::models
