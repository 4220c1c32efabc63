#include "models/qwen_hybrid.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/weight_store.h"
#include "models/qwen_layers.h"

namespace godwit::models {
namespace {

using checkpoint::Config;
using checkpoint::WeightScope;

// Where the mean of norm weights lies that are neither w - 1 nor shifted twice.
constexpr double kLowestMean = 0.5, kHighestMean = 1.6;

nn::GatedDeltaMixer::Options delta_of(const Config& config) {
  nn::GatedDeltaMixer::Options options = {.hidden = config.hidden,
                                          .key_heads = needed_size(config, "linear_num_key_heads"),
                                          .value_heads = needed_size(config, "linear_num_value_heads"),
                                          .key_dim = needed_size(config, "linear_key_head_dim"),
                                          .value_dim = needed_size(config, "linear_value_head_dim"),
                                          .kernel = needed_size(config, "linear_conv_kernel_dim"),
                                          .norm_eps = config.norm_eps};
  if (options.value_heads % options.key_heads != 0)
    fail(ErrorCode::corrupt_file, config.model_type, "{}: {} value heads are no multiple of {} key heads",
         config.origin, options.value_heads, options.key_heads);
  if (options.kernel < 2)
    fail(ErrorCode::unsupported, config.model_type, "{}: linear_conv_kernel_dim is {}", config.origin,
         options.kernel);
  options.has_tiled_values =
      config.boolean("value_heads_are_tiled", false) && options.value_heads != options.key_heads;
  options.a_log_is_rate = config.from_gguf;
  return options;
}

nn::Attention::Options attention_of(const Config& config) {
  nn::Attention::Options options;
  options.hidden = config.hidden;
  options.heads = config.heads;
  options.kv_heads = config.kv_heads;
  options.head_dim = config.head_dim;
  options.scale = std::pow(config.head_dim, -0.5);
  options.qkv_bias = options.output_bias = config.attention_bias;
  options.packing = nn::QkvPacking::gated;
  options.qk_norm = nn::HeadNormOptions{.eps = config.norm_eps};
  return options;
}

nn::Rope::Options rope_of(const Config& config) {
  const double turned = config.head_dim * config.partial_rotary_factor;
  // The oracle cuts the fraction off; a GGUF file says the number itself, here a share of the head.
  nn::Rope::Options options;
  options.dims = static_cast<int>(config.from_gguf ? std::lround(turned) : static_cast<long>(turned));
  options.base = config.rope_theta;
  options.scaling = config.rope_scaling;
  options.max_positions = config.max_position_embeddings;
  return options;
}

void check_layer_types(const Config& config, const HybridSpec& spec) {
  for (std::size_t i = 0; i < config.layer_types.size(); ++i) {
    const std::string_view by_interval =
        spec.is_attention(static_cast<int>(i)) ? "full_attention" : "linear_attention";
    if (config.layer_types[i] != by_interval)
      fail(ErrorCode::corrupt_file, config.model_type,
           "{}: layer_types[{}] is {}, full_attention_interval {} makes it {}", config.origin, i,
           config.layer_types[i], spec.interval, by_interval);
  }
}

void check_gates(const Config& config) {
  const std::string gate = config.string("output_gate_type", "swish");
  if (gate != "swish" && gate != "silu")
    fail(ErrorCode::unsupported, config.model_type, "{}: output_gate_type is '{}', the graph has swish",
         config.origin, gate);
  if (!config.boolean("attn_output_gate", true))
    fail(ErrorCode::unsupported, config.model_type, "{}: attn_output_gate is false, the graph always has it",
         config.origin);
}

// Shifting norms that hold w already, or taking w - 1 for w, leaves text that is fluent for a while.
std::vector<std::string> norm_warnings(const WeightScope& root, const Config& config,
                                       const HybridSpec& spec) {
  std::vector<mx::array> means;
  for (int i = 0; i < config.layers; ++i)
    if (const auto w = (layer_scope(root, i) / "input_layernorm").dense_if_present("weight", {config.hidden}))
      means.push_back(mx::mean(mx::astype(*w, mx::float32)));
  if (means.empty()) return {};
  const bool is_shifted = spec.gain == nn::NormGain::one_plus_weight;
  const double mean = mx::mean(mx::stack(means)).item<float>() + (is_shifted ? 1.0 : 0.0);
  if (mean >= kLowestMean && mean <= kHighestMean) return {};
  return {fmt::format(
      "{}: the weights of input_layernorm, taken {}, have a mean of {:.2f}, where about 1 is usual: "
      "this file may have been shifted {}",
      config.origin, is_shifted ? "as w - 1" : "as they are", mean, mean > 1 ? "twice" : "not at all")};
}

}  // namespace

HybridSpec hybrid_spec(const Config& config, bool is_renormalized) {
  HybridSpec spec;
  spec.interval = config.has("full_attention_interval") ? needed_size(config, "full_attention_interval") : 4;
  check_layer_types(config, spec);
  check_gates(config);
  check_silu(config);
  spec.attention = attention_of(config);
  spec.rope = rope_of(config);
  spec.delta = delta_of(config);
  spec.tied = config.tie_word_embeddings.value_or(false);
  spec.sparse.assign(static_cast<std::size_t>(config.layers), false);
  if (config.integer("num_experts", 0) > 0) spec.experts = qwen_experts(config, is_renormalized, true);
  return spec;
}

checkpoint::WeightRules hybrid_rules(const Config& config, const HybridSpec& spec) {
  try {
    static_cast<void>(nn::Rope(spec.rope));
  } catch (const Error& error) {
    throw Error(error.code(), config.origin, error.what());
  }
  checkpoint::WeightRules rules{.drop = {"rotary_emb.inv_freq", "vision_tower", "model.visual"},
                                .rename = {}};
  if (spec.tied) rules.drop.emplace_back("lm_head.");
  if (config.from_gguf) {
    rules.drop.insert(rules.drop.end(), {"nextn.embed_tokens.", "nextn.shared_head_head."});
    rules.rename = [layers = config.layers](std::string_view name) { return hybrid_gguf_name(name, layers); };
  }
  return rules;
}

cache::StateNeeds hybrid_needs(const Config& config, const HybridSpec& spec) {
  cache::StateNeeds needs = decoder_needs(config);
  for (std::size_t i = 0; i < needs.size(); ++i) {
    if (spec.is_attention(static_cast<int>(i))) continue;
    needs[i] = {};
    needs[i].content = cache::Content::recurrent;
    needs[i].recurrent = spec.delta.need();
  }
  return needs;
}

std::unique_ptr<const Block> hybrid_block(const WeightScope& scope, const Config& config,
                                          const HybridSpec& spec, const nn::Rope& rope, bool is_attention,
                                          bool is_sparse) {
  std::unique_ptr<const nn::Mixer> mixer;
  if (is_attention) {
    nn::Attention::Options attention = spec.attention;
    attention.qk_norm->gain = spec.gain;
    mixer = std::make_unique<const nn::Attention>(scope / "self_attn", attention, rope);
  } else {
    mixer = std::make_unique<const nn::GatedDeltaMixer>(scope / "linear_attn", spec.delta);
  }
  const nn::NormOptions norm = {.dims = config.hidden, .eps = config.norm_eps, .gain = spec.gain};
  return pre_norm_block(scope, norm, std::move(mixer),
                        qwen_feed_forward(scope, config, is_sparse ? &spec.experts : nullptr));
}

Blocks hybrid_blocks(const WeightScope& root, const Config& config, const HybridSpec& spec) {
  const nn::Rope rope(spec.rope);
  Blocks blocks;
  for (int i = 0; i < config.layers; ++i)
    blocks.push_back(hybrid_block(layer_scope(root, i), config, spec, rope, spec.is_attention(i),
                                  spec.sparse[static_cast<std::size_t>(i)]));
  return blocks;
}

Decoder::Options hybrid_options(const WeightScope& root, const Config& config, const HybridSpec& spec) {
  return {.norm = {.eps = config.norm_eps, .gain = spec.gain},
          .head = {.tied = spec.tied},
          .warnings = norm_warnings(root, config, spec)};
}

bool has_raw_convolution(const WeightScope& root) {
  const std::vector<std::string> names = root.store().names("model.layers.");
  return std::ranges::any_of(names, [&](const std::string& name) {
    const mx::Shape& shape = root.store().entry(name).shape;
    return name.ends_with("conv1d.weight") && shape.size() == 3 && shape.back() != 1;
  });
}

}  // namespace godwit::models
