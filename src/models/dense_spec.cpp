// The llama baseline, from which families say their differences.
#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "models/dense.h"

namespace godwit::models {

using checkpoint::Config;

nn::Rope::Options dense_rope(const Config& config) {
  nn::Rope::Options options;
  // mlx-lm's families turn the whole head unless they say otherwise; a GGUF file says how much of it turns.
  options.dims = config.from_gguf ? static_cast<int>(std::lround(config.head_dim * config.partial_rotary_factor))
                                  : config.head_dim;
  options.base = config.rope_theta;
  options.traditional = config.rope_traditional;
  options.scaling = config.rope_scaling;
  options.max_positions = config.max_position_embeddings;
  options.proportional_part = config.partial_rotary_factor;
  return options;
}

nn::Rope::Options partial_rope(const Config& config) {
  nn::Rope::Options options = dense_rope(config);
  if (!config.from_gguf) options.dims = static_cast<int>(config.head_dim * config.partial_rotary_factor);
  return options;
}

void require_rope_types(const Config& config, std::initializer_list<std::string_view> types) {
  const std::string type = config.rope_scaling ? config.rope_scaling->type : "default";
  if (type == "default" || std::ranges::find(types, type) != types.end()) return;
  fail(ErrorCode::unsupported, config.model_type, "{}: {} has no rope scaling of type '{}'", config.origin,
       config.model_type, type);
}

void require_plain_heads(const Config& config) {
  if (config.heads * config.head_dim == config.hidden) return;
  fail(ErrorCode::unsupported, config.model_type, "{}: {} heads of {} do not make the hidden size {}, as {} has it",
       config.origin, config.heads, config.head_dim, config.hidden, config.model_type);
}

double norm_eps_by(const Config& config, std::string_view key) {
  return config.from_gguf ? config.norm_eps : config.number(key);
}

std::vector<std::optional<int>> windows_by_type(const Config& config) {
  std::vector<std::optional<int>> windows(static_cast<std::size_t>(config.layers));
  for (std::size_t i = 0; i < config.layer_types.size(); ++i) {
    const std::string& type = config.layer_types[i];
    if (type == "full_attention") continue;
    if (type != "sliding_attention")
      fail(ErrorCode::unsupported, config.model_type, "{}: layer {} is of type '{}'", config.origin, i, type);
    if (!config.sliding_window)
      fail(ErrorCode::corrupt_file, config.model_type, "{}: layer {} slides, and there is no sliding_window",
           config.origin, i);
    windows[i] = config.sliding_window;
  }
  return windows;
}

std::vector<std::optional<int>> windows_by_period(const Config& config, int period) {
  if (!config.sliding_window || period < 1)
    fail(ErrorCode::corrupt_file, config.model_type, "{}: sliding_window is missing, or the period of full layers is {}",
         config.origin, period);
  std::vector<std::optional<int>> windows;
  for (int i = 0; i < config.layers; ++i)
    windows.push_back((i + 1) % period == 0 ? std::nullopt : config.sliding_window);
  return windows;
}

DenseSpec llama_spec(const Config& config) {
  DenseSpec spec;
  spec.norm.eps = config.norm_eps;
  spec.attention.hidden = spec.mlp.hidden = config.hidden;
  spec.attention.heads = config.heads;
  spec.attention.kv_heads = config.kv_heads;
  spec.attention.head_dim = config.head_dim;
  spec.attention.scale = std::pow(config.head_dim, -0.5);
  spec.attention.qkv_bias = spec.attention.output_bias = config.attention_bias;
  spec.mlp.intermediate = config.intermediate;
  spec.mlp.bias = config.mlp_bias;
  spec.ropes = {{.options = dense_rope(config)}};
  for (const std::optional<int>& window : windows_by_type(config)) spec.layers.push_back({.window = window});
  spec.tie = config.tie_word_embeddings.value_or(true) ? DenseTie::tied : DenseTie::untied;
  return spec;
}

}  // namespace godwit::models
