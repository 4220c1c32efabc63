// What only GGUF files of architecture "gemma4" say, in the keys of a config.json. Lists by layer hold what a
// config.json says by layer type, and the tensor rope_freqs says which pairs of a full layer turn.
#include "models/gemma4_gguf.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/gguf.h"

namespace godwit::models {
namespace {

using checkpoint::GgufFile;
using checkpoint::Spelling;
using checkpoint::TensorEntry;

constexpr std::array<Spelling, 18> kNames = {{
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_norm", "pre_feedforward_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
    {"post_ffw_norm_1", "post_feedforward_layernorm_1"},
    {"post_ffw_norm_2", "post_feedforward_layernorm_2"},
    {"pre_ffw_norm_2", "pre_feedforward_layernorm_2"},
    {"layer_output_scale", "layer_scalar"},
    {"inp_gate", "per_layer_input_gate"},
    {"proj", "per_layer_projection"},
    {"post_norm", "post_per_layer_input_norm"},
    {"per_layer_token_embd", "model.embed_tokens_per_layer"},
    {"per_layer_model_proj", "model.per_layer_model_projection"},
    {"per_layer_proj_norm", "model.per_layer_projection_norm"},
    {"ffn_gate_inp", "router.proj"},  // its leaf "scale" is router.scale
    {"ffn_gate_up_exps", "experts.gate_up_proj"},
    {"ffn_gate_exps", "experts.switch_glu.gate_proj"},
    {"ffn_up_exps", "experts.switch_glu.up_proj"},
    {"ffn_down_exps", "experts.down_proj"},  // its leaf "scale" is router.per_expert_scale
}};
constexpr std::array<std::string_view, 2> kKeysPerLayer = {"feed_forward_length", "attention.head_count_kv"};

class Completion {
 public:
  Completion(const GgufFile& file, Json& config)
      : file_(file), config_(config), layers_(config["num_hidden_layers"].get<std::size_t>()) {}

  void run() {
    const auto full = integer("attention.key_length");
    config_["global_head_dim"] = full.value_or(0);
    if (const auto sliding = integer("attention.key_length_swa")) config_["head_dim"] = *sliding;
    config_["num_kv_shared_layers"] = integer("attention.shared_kv_layers").value_or(0);
    config_["hidden_size_per_layer_input"] = integer("embedding_length_per_layer_input").value_or(0);
    if (!config_.contains("final_logit_softcapping")) config_["final_logit_softcapping"] = 0;
    read_mlp();
    read_kv_heads();
    read_rope();
    read_experts();
  }

 private:
  std::string key(std::string_view tail) const { return "gemma4." + std::string(tail); }
  std::optional<std::int64_t> integer(std::string_view tail) const {
    return file_.metadata.integer(key(tail));
  }
  const TensorEntry* tensor(std::string_view name) const {
    const auto found = std::ranges::find(file_.tensors, name, &TensorEntry::name);
    return found == file_.tensors.end() ? nullptr : &*found;
  }

  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorCode::unsupported, "gemma4", "{}: {}", file_.metadata.origin(),
         fmt::format(format, std::forward<Args>(args)...));
  }

  // One value for each layer; a scalar stands for all.
  std::vector<std::int64_t> by_layer(std::string_view tail) const {
    std::vector<std::int64_t> values =
        file_.metadata.integers(key(tail)).value_or(std::vector<std::int64_t>{});
    if (values.size() == 1) values.resize(layers_, values[0]);
    if (values.size() < layers_) refuse("{} has {} values for {} layers", key(tail), values.size(), layers_);
    return values;
  }

  bool slides(std::size_t layer) const {
    if (const auto types = config_.find("layer_types"); types != config_.end())
      return layer >= types->size() || (*types)[layer] == "sliding_attention";
    const std::int64_t period = config_.value("sliding_window_pattern", std::int64_t{0});
    return period <= 0 || (static_cast<std::int64_t>(layer) + 1) % period != 0;
  }

  void read_mlp() {
    const auto widths = by_layer("feed_forward_length");
    const auto shared = config_["num_kv_shared_layers"].get<std::int64_t>();
    const std::int64_t own = widths[0], last = widths[layers_ - 1];
    for (std::size_t i = 0; i < layers_; ++i) {
      const bool is_shared = static_cast<std::int64_t>(i) >= static_cast<std::int64_t>(layers_) - shared;
      if (widths[i] != (is_shared ? last : own) || (last != own && last != 2 * own))
        refuse("{} of layer {} is {}: shared layers have the width {} of the others or twice that",
               key("feed_forward_length"), i, widths[i], own);
    }
    config_["intermediate_size"] = own;
    config_["use_double_wide_mlp"] = last != own;
  }

  void read_kv_heads() {
    const auto heads = by_layer("attention.head_count_kv");
    std::optional<std::size_t> full, sliding;
    for (std::size_t i = 0; i < layers_; ++i) {
      std::optional<std::size_t>& first = slides(i) ? sliding : full;
      if (!first) first = i;
      if (heads[i] != heads[*first])
        refuse("{} is {} in layer {} and {} in layer {} of the same type", key("attention.head_count_kv"),
               heads[i], i, heads[*first], *first);
    }
    const bool shares_projection = full && !tensor(fmt::format("blk.{}.attn_v.weight", *full));
    if (full && sliding && !shares_projection && heads[*full] != heads[*sliding])
      refuse("full layers have {} heads of keys, sliding ones {}, and each projects its values", heads[*full],
             heads[*sliding]);
    config_["num_key_value_heads"] = heads[sliding.value_or(0)];
    config_["attention_k_eq_v"] = shares_projection;
    if (shares_projection) config_["num_global_key_value_heads"] = heads[*full];
  }

  // Ones for the pairs that turn, then 1e30 for those that stand still.
  std::size_t turned_pairs(const TensorEntry& entry) const {
    if (entry.format != checkpoint::TensorFormat::f32 || entry.shape.size() != 1)
      refuse("rope_freqs.weight is no vector of F32");
    std::vector<float> factors(static_cast<std::size_t>(entry.shape[0]));
    std::memcpy(factors.data(), entry.bytes().data(), factors.size() * sizeof(float));
    const auto end = std::ranges::find_if(factors, [](float f) { return f != 1.0f; });
    const auto odd = std::find_if(end, factors.end(), [](float f) { return !(f >= 1e29f); });
    if (odd != factors.end())
      refuse("rope_freqs.weight holds {}: neither 1 nor a pair that stands still", *odd);
    return static_cast<std::size_t>(end - factors.begin());
  }

  void read_rope() {
    const TensorEntry* const factors = tensor("rope_freqs.weight");
    const auto dims = config_["global_head_dim"].get<std::int64_t>();
    if (!factors || dims <= 0 || factors->shape.empty() || factors->shape[0] * 2 != dims)
      refuse("rope_freqs.weight does not say which pairs of {} elements turn", dims);
    if (!config_.contains("rope_local_base_freq")) refuse("the key {} is missing", key("rope.freq_base_swa"));
    const auto turned = static_cast<double>(2 * turned_pairs(*factors));
    double part = turned / static_cast<double>(dims);
    if (static_cast<double>(dims) * part < turned)
      part = std::nextafter(part, 1.0);  // the graph cuts the product
    const Json full = {{"rope_type", "proportional"},
                       {"rope_theta", config_["rope_theta"]},
                       {"partial_rotary_factor", part}};
    Json sliding = {{"rope_type", "default"}, {"rope_theta", config_["rope_local_base_freq"]}};
    const auto rotated = integer("rope.dimension_count_swa");
    if (rotated && *rotated != config_["head_dim"].get<std::int64_t>())
      refuse("{} is {} of {} elements", key("rope.dimension_count_swa"), *rotated,
             config_["head_dim"].get<std::int64_t>());
    config_["rope_parameters"] = {{"full_attention", full}, {"sliding_attention", sliding}};
  }

  void read_experts() {
    config_["enable_moe_block"] = config_.value("num_experts", std::int64_t{0}) > 0;
    if (const auto chosen = integer("expert_used_count")) config_["top_k_experts"] = *chosen;
    if (const auto width = integer("expert_feed_forward_length")) config_["moe_intermediate_size"] = *width;
  }

  const GgufFile& file_;
  Json& config_;
  std::size_t layers_;
};

void complete(const GgufFile& file, Json& config) { Completion(file, config).run(); }

}  // namespace

constinit const std::array<checkpoint::GgufDialect, 1> kGemma4Gguf = {
    {{.architecture = "gemma4", .names = kNames, .keys_per_layer = kKeysPerLayer, .complete = complete}}};

}  // namespace godwit::models
