// Llama and what shares its graph: GQA, SwiGLU, half-split or traditional rotary, optional biases, optional
// sliding layers. Truth: mlx_lm/models/llama.py.
#include <array>

#include "base/error.h"
#include "models/decoder.h"
#include "models/families.h"

namespace godwit::models {
namespace {

using checkpoint::Config;
using checkpoint::WeightScope;

constexpr std::array<std::string_view, 3> kAliases = {"iquestcoder", "mistral", "xverse"};

bool tied(const Config& config) { return config.tie_word_embeddings.value_or(true); }

// The window of each layer: none where layer_types says full_attention or says nothing.
std::vector<std::optional<int>> windows_of(const Config& config) {
  std::vector<std::optional<int>> windows(static_cast<std::size_t>(config.layers));
  for (std::size_t i = 0; i < config.layer_types.size(); ++i) {
    const std::string& type = config.layer_types[i];
    if (type == "full_attention") continue;
    if (type != "sliding_attention")
      fail(ErrorCode::unsupported, "llama", "{}: layer {} is of type '{}'", config.origin, i, type);
    if (!config.sliding_window)
      fail(ErrorCode::corrupt_file, "llama", "{}: layer {} slides, and there is no sliding_window",
           config.origin, i);
    windows[i] = config.sliding_window;
  }
  return windows;
}

checkpoint::WeightRules rules(const Config& config) {
  static_cast<void>(windows_of(config));
  return decoder_rules(config, tied(config));
}

cache::StateNeeds needs(const Config& config) { return decoder_needs(config, windows_of(config)); }

std::unique_ptr<Model> make(const WeightScope& root, const Config& config) {
  nn::Attention::Options attention = attention_options(config);
  attention.qkv_bias = attention.output_bias = config.attention_bias;
  nn::GatedMlp::Options mlp = mlp_options(config);
  mlp.bias = config.mlp_bias;
  const nn::Rope rope(rope_options(config, &root));
  return std::make_unique<Decoder>(root, config, Decoder::Options{.tied = tied(config)},
                                   pre_norm_blocks(root, config, attention, rope, mlp), needs(config));
}

}  // namespace

const Family llama = {"llama", kAliases, rules, needs, make};

}  // namespace godwit::models
