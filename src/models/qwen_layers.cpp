#include "models/qwen_layers.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace godwit::models {

using checkpoint::Config;
using checkpoint::GgufFile;
using checkpoint::WeightScope;

std::unique_ptr<const Block> pre_norm_block(const WeightScope& layer, const nn::NormOptions& norm,
                                            std::unique_ptr<const nn::Mixer> mixer,
                                            std::unique_ptr<const nn::FeedForward> feed_forward) {
  const auto branch = [&](const char* name) {
    return nn::BranchNorms{.before = nn::Norm(layer / name, norm)};
  };
  return std::make_unique<const SequentialBlock>(
      nn::MixerBranch(branch("input_layernorm"), std::move(mixer)),
      nn::FeedForwardBranch(branch("post_attention_layernorm"), std::move(feed_forward)));
}

int needed_size(const Config& config, std::string_view key) {
  const std::int64_t value = config.integer(key);
  if (value < 1 || value > 16384)
    fail(ErrorCode::corrupt_file, config.model_type, "{}: {} is {}, wanted 1 to 16384", config.origin, key,
         value);
  return static_cast<int>(value);
}

void check_silu(const Config& config) {
  const std::string& named = config.hidden_act;
  if (!named.empty() && named != "silu" && named != "swish")
    fail(ErrorCode::unsupported, config.model_type, "{}: hidden_act is '{}', the graph of {} has silu",
         config.origin, named, config.model_type);
}

bool is_sparse_layer(const Config& config, int layer) {
  const std::vector<int> dense = config.integers("mlp_only_layers");
  return std::ranges::find(dense, layer) == dense.end() &&
         (layer + 1) % needed_size(config, "decoder_sparse_step") == 0;
}

nn::SparseMlp::Options qwen_experts(const Config& config, bool is_renormalized, bool shares) {
  nn::SparseMlp::Options options;
  const int experts = needed_size(config, "num_experts"), chosen = needed_size(config, "num_experts_per_tok");
  if (chosen > experts)
    fail(ErrorCode::corrupt_file, config.model_type, "{}: num_experts_per_tok {} of {} experts",
         config.origin, chosen, experts);
  options.router = {
      .hidden = config.hidden,
      .routing = {.experts = experts, .chosen = chosen, .is_renormalized = is_renormalized},
  };
  options.experts = {.hidden = config.hidden,
                     .intermediate = needed_size(config, "moe_intermediate_size"),
                     .experts = experts,
                     .names = nn::SwitchGlu::usual_names()};
  if (shares)
    options.shared = nn::Mlp::Options{.hidden = config.hidden,
                                      .intermediate = needed_size(config, "shared_expert_intermediate_size")};
  return options;
}

std::unique_ptr<const nn::FeedForward> qwen_feed_forward(const WeightScope& layer, const Config& config,
                                                         const nn::SparseMlp::Options* experts) {
  if (experts) return std::make_unique<const nn::SparseMlp>(layer / "mlp", *experts);
  return std::make_unique<const nn::Mlp>(
      layer / "mlp", nn::Mlp::Options{.hidden = config.hidden, .intermediate = config.intermediate});
}

std::optional<std::int64_t> gguf_integer(const GgufFile& file, std::string_view key) {
  return file.metadata.integer(
      fmt::format("{}.{}", file.metadata.string("general.architecture").value_or(""), key));
}

void complete_experts(const GgufFile& file, Json& config) {
  constexpr std::pair<std::string_view, const char*> kKeys[] = {
      {"expert_count", "num_experts"},
      {"expert_used_count", "num_experts_per_tok"},
      {"expert_feed_forward_length", "moe_intermediate_size"},
      {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
  };
  for (const auto& [from, to] : kKeys)
    if (const auto value = gguf_integer(file, from)) config[to] = *value;
  const auto architecture = file.metadata.string("general.architecture").value_or("");
  config["norm_topk_prob"] = file.metadata.boolean(architecture + ".norm_top_k_prob").value_or(true);
  config["decoder_sparse_step"] = 1;
  config["mlp_only_layers"] = Json::array();
}

}  // namespace godwit::models
