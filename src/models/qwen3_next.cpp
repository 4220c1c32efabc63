// Qwen3-Next: the hybrid decoder with projections grouped by key head, and experts in the layers that the
// config names. Truth: mlx_lm/models/qwen3_next.py.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "checkpoint/weight_store.h"
#include "models/capability.h"
#include "models/dense_experts.h"
#include "models/families.h"
#include "models/qwen_hybrid.h"
#include "models/qwen_layers.h"

namespace godwit::models {
namespace {

using checkpoint::Config;
using checkpoint::WeightScope;

constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {{{.architecture = "qwen3next",
                                                            .names = kGgufHybridNames,
                                                            .keys_per_layer = kGgufHybridKeysPerLayer,
                                                            .complete = complete_hybrid}}};
constexpr checkpoint::Dialect kDialect = {.model_type = "qwen3_next", .gguf = kGguf};

HybridSpec spec_of(const Config& config) {
  // Keys without a default in the oracle.
  if (!config.from_gguf)
    for (const char* const key : {"head_dim", "max_position_embeddings"}) config.integer(key);
  config.integer("num_experts");
  HybridSpec spec = hybrid_spec(config, config.boolean("norm_topk_prob", false));
  spec.delta.is_grouped = !config.from_gguf;
  if (config.from_gguf) spec.experts.experts.names = nn::SwitchGlu::fused_names("switch_mlp");
  if (config.integer("num_experts") > 0)
    for (int i = 0; i < config.layers; ++i)
      spec.sparse[static_cast<std::size_t>(i)] = is_sparse_layer(config, i);
  return spec;
}

checkpoint::WeightRules rules(const Config& config) {
  checkpoint::WeightRules rules = hybrid_rules(config, spec_of(config));
  rules.drop.emplace_back("mtp.");
  if (!config.from_gguf) return rules;
  rules.drop.emplace_back(".nextn.");
  for (int i = 0; i < config.integer("mtp_num_hidden_layers", 0); ++i)
    for (const char* const prefix : {"blk", "model.layers"})
      rules.drop.push_back(fmt::format("{}.{}.", prefix, config.layers + i));
  return rules;
}

cache::StateNeeds needs(const Config& config) { return hybrid_needs(config, spec_of(config)); }

// As the oracle tells raw files: by tensors of single experts.
bool is_raw(const WeightScope& root, const Config& config) {
  if (config.from_gguf) return false;
  const std::vector<std::string> names = root.store().names("model.layers.");
  const bool has_single_experts = std::ranges::any_of(
      names, [](const std::string& name) { return name.ends_with(".mlp.experts.0.up_proj.weight"); });
  if (!has_single_experts && has_raw_convolution(root))
    fail(ErrorCode::corrupt_file, "qwen3_next",
         "{}: the convolutions have the shape of Hugging Face's files, the experts do not: whether norms "
         "hold w or "
         "w - 1 is open",
         root.store().origin());
  return has_single_experts;
}

std::unique_ptr<Model> make(const WeightScope& root, const Config& config) {
  HybridSpec spec = spec_of(config);
  if (is_raw(root, config)) spec.gain = nn::NormGain::one_plus_weight;
  return std::make_unique<Decoder>(root, config, hybrid_options(root, config, spec),
                                   hybrid_blocks(root, config, spec), hybrid_needs(config, spec));
}

}  // namespace

constexpr std::array<std::string_view, 1> kCapabilities = {kRecurrentState};

const Family qwen3_next = measured_in_the_median_token({.id = "qwen3_next",
                                                        .dialect = &kDialect,
                                                        .rules = rules,
                                                        .needs = needs,
                                                        .make = make,
                                                        .lesser = kDenseExperts,
                                                        .capabilities = kCapabilities});

}  // namespace godwit::models
