#include "models/gemma4_plan.h"

#include <map>
#include <string>

#include "base/error.h"
#include "checkpoint/config_rope.h"
#include "models/dense.h"

namespace godwit::models {
namespace {

using checkpoint::Config;

constexpr const char* kOrigin = "gemma4";
constexpr std::int64_t kMaxSize = 1 << 24;

int size_of(const Config& config, const char* key, std::int64_t least) {
  const std::int64_t value = config.integer(key, 0);
  if (value < least || value > kMaxSize)
    fail(ErrorCode::corrupt_file, kOrigin, "{}: {} is {}, wanted at least {}", config.origin, key, value,
         least);
  return static_cast<int>(value);
}

std::vector<std::optional<int>> windows_of(const Config& config) {
  if (config.layer_types.empty()) return windows_by_period(config, config.sliding_window_pattern.value_or(0));
  return windows_by_type(config);
}

// One entry of rope_parameters. The oracle's rotation is "default" over the whole head where the type says no
// more.
nn::Rope::Options rope_of(const Config& config, const char* type, int dims) {
  const auto all = config.raw.find("rope_parameters");
  if (all == config.raw.end() || !all->is_object() || !all->contains(type) || !(*all)[type].is_object())
    fail(ErrorCode::unsupported, kOrigin, "{}: rope_parameters says nothing about {} layers", config.origin,
         type);
  const std::string origin = fmt::format("{}: rope_parameters of {} layers", config.origin, type);
  const Json& own = (*all)[type];
  const auto number = [&](const char* key, double absent) {
    if (!own.contains(key) || own[key].is_null()) return absent;
    if (!own[key].is_number() || !(own[key].get<double>() > 0))
      fail(ErrorCode::corrupt_file, kOrigin, "{}: {} is {}, wanted a number above 0", origin, key,
           dump_json(own[key]));
    return own[key].get<double>();
  };
  nn::Rope::Options options;
  options.dims = dims;
  options.base = number("rope_theta", 10000.0);
  options.traditional = config.rope_traditional;
  options.scaling = checkpoint::rope_scaling_of(own, origin);
  options.max_positions = config.max_position_embeddings;
  options.proportional_part = number("partial_rotary_factor", 1.0);
  const bool is_proportional = options.scaling && options.scaling->type == "proportional";
  if (options.proportional_part != 1.0 && !is_proportional)
    fail(ErrorCode::unsupported, kOrigin, "{}: partial_rotary_factor {} is for the type proportional", origin,
         options.proportional_part);
  try {
    static_cast<void>(nn::Rope(options));
  } catch (const Error& error) {
    throw Error(error.code(), origin, error.what());
  }
  return options;
}

int owners_of(const Config& config) {
  const std::int64_t shared = config.integer("num_kv_shared_layers", 0);
  if (shared < 0 || shared >= config.layers)
    fail(ErrorCode::corrupt_file, kOrigin, "{}: num_kv_shared_layers is {} of {} layers", config.origin,
         shared, config.layers);
  return config.layers - static_cast<int>(shared);
}

// K = V layers have a number of heads of their own.
int kv_heads_of(const Config& config, bool keys_are_values) {
  if (!keys_are_values || !config.has("num_global_key_value_heads")) return config.kv_heads;
  const int heads = size_of(config, "num_global_key_value_heads", 1);
  if (config.heads % heads != 0)
    fail(ErrorCode::corrupt_file, kOrigin, "{}: num_global_key_value_heads {} does not divide {} heads",
         config.origin, heads, config.heads);
  return heads;
}

std::vector<Gemma4LayerPlan> layers_of(const Config& config, const Gemma4Plan& plan) {
  const bool shares_projection = config.boolean("attention_k_eq_v", false);
  const int global = config.has("global_head_dim") ? size_of(config, "global_head_dim", 0) : 0;
  std::map<bool, int> donors;  // is_full -> the last owner
  std::vector<Gemma4LayerPlan> layers;
  for (const std::optional<int>& window : windows_of(config)) {
    Gemma4LayerPlan layer{.is_full = !window, .window = window.value_or(0)};
    const int index = static_cast<int>(layers.size());
    layer.head_dim = layer.is_full && global > 0 ? global : config.head_dim;
    layer.keys_are_values = layer.is_full && shares_projection;
    layer.kv_heads = kv_heads_of(config, layer.keys_are_values);
    layer.owns_keys = index < plan.owners;
    layer.intermediate =
        config.intermediate * (!layer.owns_keys && plan.doubles_shared_mlp.value_or(true) ? 2 : 1);
    if (layer.owns_keys) donors[layer.is_full] = index;
    if (!donors.contains(layer.is_full))
      fail(ErrorCode::unsupported, kOrigin,
           "{}: layer {} shares keys, and none of the first {} layers is of its type", config.origin, index,
           plan.owners);
    layer.state = donors[layer.is_full];
    layers.push_back(layer);
  }
  return layers;
}

void read_ropes(const Config& config, Gemma4Plan& plan) {
  for (const Gemma4LayerPlan& layer : plan.layers) {
    std::optional<nn::Rope::Options>& rope = layer.is_full ? plan.full_rope : plan.sliding_rope;
    if (!rope) rope = rope_of(config, layer.is_full ? "full_attention" : "sliding_attention", layer.head_dim);
  }
}

void check_activation(const Config& config) {
  const std::string_view own = nn::activation_name(nn::Activation::gelu_approx);
  if (!config.hidden_act.empty() && config.hidden_act != own)
    fail(ErrorCode::unsupported, kOrigin, "{}: hidden_activation is '{}', the graph has {}", config.origin,
         config.hidden_act, own);
}

}  // namespace

Gemma4Plan gemma4_plan(const Config& config) {
  check_activation(config);
  Gemma4Plan plan;
  plan.owners = owners_of(config);
  if (config.has("use_double_wide_mlp")) plan.doubles_shared_mlp = config.boolean("use_double_wide_mlp");
  plan.layers = layers_of(config, plan);
  read_ropes(config, plan);
  plan.layer_input_dims = size_of(config, "hidden_size_per_layer_input", 0);
  if (config.boolean("enable_moe_block", false))
    plan.experts = Gemma4Experts{.count = size_of(config, "num_experts", 1),
                                 .chosen = size_of(config, "top_k_experts", 1),
                                 .intermediate = size_of(config, "moe_intermediate_size", 1)};
  plan.soft_cap = config.final_logit_softcapping.value_or(0.0);
  plan.is_tied = config.tie_word_embeddings.value_or(true);
  return plan;
}

cache::StateNeeds gemma4_needs(const Gemma4Plan& plan) {
  cache::StateNeeds needs;
  for (const Gemma4LayerPlan& layer : plan.layers) {
    if (!layer.owns_keys) break;
    cache::LayerNeed& need = needs.emplace_back();
    need.kv_heads = layer.kv_heads;
    need.key_dim = need.value_dim = layer.head_dim;
    if (layer.is_full) continue;
    need.window = cache::WindowKind::sliding;
    need.window_size = layer.window;
  }
  return needs;
}

}  // namespace godwit::models
