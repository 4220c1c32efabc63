#include "models/dense.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "models/renaming.h"

namespace godwit::models {
namespace {

using checkpoint::Config;
using checkpoint::WeightScope;

std::optional<nn::Norm> norm_of(const WeightScope& layer, const Config& config, const DenseSpec& spec,
                                std::string_view name) {
  if (name.empty()) return std::nullopt;
  nn::NormOptions options = spec.norm;
  options.dims = config.hidden;
  return nn::Norm(layer / name, options);
}

nn::BranchNorms branch_norms(const WeightScope& layer, const Config& config, const DenseSpec& spec,
                             const DenseNorms& names) {
  return {.before = norm_of(layer, config, spec, names.before),
          .after = norm_of(layer, config, spec, names.after),
          .sum = spec.residual_sum,
          .multiplier = spec.residual_multiplier};
}

std::unique_ptr<const Block> block_of(const WeightScope& layer, const Config& config, const DenseSpec& spec,
                                      const DenseLayer& own, const std::optional<nn::Rope>& rope) {
  nn::Mlp::Options mlp_options = spec.mlp;
  if (own.xielu) mlp_options.xielu = own.xielu;
  auto attention = std::make_unique<const nn::Attention>(layer / "self_attn", spec.attention, rope);
  auto mlp = std::make_unique<const nn::Mlp>(layer / "mlp", mlp_options);
  if (spec.parallel)
    return std::make_unique<const ParallelBlock>(*norm_of(layer, config, spec, spec.attention_norms.before),
                                                 std::move(attention), std::move(mlp), *spec.parallel);
  return std::make_unique<const SequentialBlock>(
      nn::MixerBranch(branch_norms(layer, config, spec, spec.attention_norms), std::move(attention)),
      nn::FeedForwardBranch(branch_norms(layer, config, spec, spec.mlp_norms), std::move(mlp)));
}

std::vector<nn::Rope> ropes_of(const WeightScope& root, const Config& config, const DenseSpec& spec) {
  std::vector<nn::Rope> ropes;
  for (DenseRope rope : spec.ropes) {
    if (config.from_gguf && rope.takes_file_factors)
      rope.options.period_factors = (root / "rope_freqs").dense_if_present("weight", {rope.options.dims / 2});
    ropes.emplace_back(rope.options);
  }
  return ropes;
}

// What the graph leaves open must be the config's, or nothing.
void check_activation(const Config& config, const DenseSpec& spec) {
  const std::string& named = config.hidden_act;
  const std::string_view own = nn::activation_name(spec.mlp.activation);
  if (!spec.checks_activation || named.empty() || named == own || (named == "swish" && own == "silu")) return;
  if (std::ranges::find(spec.activation_aliases, named) != spec.activation_aliases.end()) return;
  fail(ErrorCode::unsupported, "models", "{}: hidden_act is '{}', the graph of {} has {}", config.origin, named,
       config.model_type, own);
}

void check_ropes(const Config& config, const DenseSpec& spec) try {
  for (const DenseRope& rope : spec.ropes) static_cast<void>(nn::Rope(rope.options));
} catch (const Error& error) {
  throw Error(error.code(), config.origin, error.what());
}

}  // namespace

checkpoint::WeightRules dense_rules(const Config& config, const DenseSpec& spec) {
  check_activation(config, spec);
  check_ropes(config, spec);
  checkpoint::WeightRules rules{.drop = spec.drop, .rename = renaming(spec.names)};
  if (spec.tie == DenseTie::tied) rules.drop.emplace_back("lm_head.");
  return rules;
}

cache::StateNeeds dense_needs(const Config& config, const DenseSpec& spec) {
  std::vector<std::optional<int>> windows;
  for (const DenseLayer& layer : spec.layers) windows.push_back(layer.window);
  return decoder_needs(config, windows);
}

std::unique_ptr<Model> dense_model(const WeightScope& root, const Config& config, DenseSpec spec) {
  const std::vector<nn::Rope> ropes = ropes_of(root, config, spec);
  Blocks blocks;
  for (const DenseLayer& layer : spec.layers) {
    const auto rope = layer.rope ? std::optional(ropes.at(static_cast<std::size_t>(*layer.rope))) : std::nullopt;
    blocks.push_back(block_of(layer_scope(root, static_cast<int>(blocks.size())), config, spec, layer, rope));
  }
  HeadOptions head = spec.head;
  head.tied = spec.tie == DenseTie::tied ||
              (spec.tie == DenseTie::when_absent && !(root / "lm_head").has("weight"));
  Decoder::Options options = {.norm = spec.norm,
                              .embedding_scale = spec.embedding_scale,
                              .embedding_norm = spec.embedding_norm,
                              .head = head};
  return std::make_unique<Decoder>(root, config, std::move(options), std::move(blocks), dense_needs(config, spec));
}

}  // namespace godwit::models
