// Qwen3.5, dense and of experts: the hybrid decoder with flat projections, experts in every layer or in none.
// Truth: mlx_lm/models/qwen3_5.py, qwen3_5_moe.py. The multi-token head, which they drop, is kept beside the
// model.
#include <array>

#include "base/error.h"
#include "models/capability.h"
#include "models/dense_experts.h"
#include "models/families.h"
#include "models/mtp_head.h"
#include "models/qwen_hybrid.h"
#include "models/qwen_layers.h"

namespace godwit::models {
namespace {

using checkpoint::Config;
using checkpoint::WeightScope;

constexpr checkpoint::GgufDialect gguf(std::string_view architecture) {
  return {.architecture = architecture,
          .names = kGgufHybridNames,
          .keys_per_layer = kGgufHybridKeysPerLayer,
          .complete = complete_hybrid};
}
constexpr std::array<checkpoint::GgufDialect, 1> kDenseGguf = {{gguf("qwen35")}},
                                                 kMoeGguf = {{gguf("qwen35moe")}};
constexpr std::string_view kDenseAliases[] = {"qwen3_5_text"}, kMoeAliases[] = {"qwen3_5_moe_text"};
constexpr checkpoint::Dialect kDense = {.model_type = "qwen3_5",
                                        .aliases = kDenseAliases,
                                        .defaults = R"({"partial_rotary_factor": 0.25})",
                                        .rope_parameters = checkpoint::RopeParameters::first,
                                        .gguf = kDenseGguf};
// Without dense layers, configs leave the width of those out.
constexpr checkpoint::Dialect kMoe = {
    .model_type = "qwen3_5_moe",
    .aliases = kMoeAliases,
    .defaults = R"({"partial_rotary_factor": 0.25, "intermediate_size": 14336})",
    .rope_parameters = checkpoint::RopeParameters::first,
    .gguf = kMoeGguf};

HybridSpec spec_of(const Config& config) {
  // The oracle has a default of 1e5 that no release uses, and looks nowhere else.
  const auto parameters = config.raw.find("rope_parameters");
  const bool has_theta =
      parameters != config.raw.end() && parameters->is_object() && parameters->contains("rope_theta");
  if (!config.from_gguf && !has_theta)
    fail(ErrorCode::corrupt_file, "qwen3_5", "{}: the key rope_parameters.rope_theta is missing",
         config.origin);
  HybridSpec spec = hybrid_spec(config, config.boolean("norm_topk_prob", true));
  if (config.integer("num_experts", 0) > 0) spec.sparse.assign(spec.sparse.size(), true);
  spec.experts.experts.names = nn::SwitchGlu::fused_names("switch_mlp");
  return spec;
}

// "language_model.model.layers.0." and "model.language_model.layers.0." are one place; so are the ways to
// "mtp.".
std::string graph_name(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kPrefixes[] = {
      {"model.language_model.", "model."},
      {"language_model.model.mtp.", "mtp."},
      {"language_model.", ""},
      {"model.mtp.", "mtp."}};
  for (const auto& [from, to] : kPrefixes)
    if (name.starts_with(from)) return std::string(to) + std::string(name.substr(from.size()));
  return std::string(name);
}

checkpoint::WeightRules rules(const Config& config) {
  checkpoint::WeightRules rules = hybrid_rules(config, spec_of(config));
  if (!rules.rename) rules.rename = graph_name;
  return rules;
}

cache::StateNeeds needs(const Config& config) { return hybrid_needs(config, spec_of(config)); }

std::unique_ptr<Model> make(const WeightScope& root, const Config& config) {
  HybridSpec spec = spec_of(config);
  if (has_raw_convolution(root)) spec.gain = nn::NormGain::one_plus_weight;
  auto decoder = std::make_unique<Decoder>(root, config, hybrid_options(root, config, spec),
                                           hybrid_blocks(root, config, spec), hybrid_needs(config, spec));
  if (!MtpHead::is_in(root)) return decoder;
  return std::make_unique<DecoderWithMtp>(std::move(decoder), MtpHead::read(root, config, spec));
}

}  // namespace

constexpr std::array<std::string_view, 1> kCapabilities = {kRecurrentState};

const Family qwen3_5 = measured_in_the_median_token({.id = "qwen3_5",
                                                     .dialect = &kDense,
                                                     .rules = rules,
                                                     .needs = needs,
                                                     .make = make,
                                                     .lesser = kDenseExperts,
                                                     .capabilities = kCapabilities});
const Family qwen3_5_moe = measured_in_the_median_token({.id = "qwen3_5_moe",
                                                         .dialect = &kMoe,
                                                         .rules = rules,
                                                         .needs = needs,
                                                         .make = make,
                                                         .lesser = kDenseExperts,
                                                         .capabilities = kCapabilities});

}  // namespace godwit::models
