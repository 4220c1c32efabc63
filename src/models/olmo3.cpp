// OLMo 3: the graph of OLMo 2 in which three of four layers slide; only the full ones scale their rotation.
// Truth: mlx_lm/models/olmo3.py. Its GGUF files call themselves olmo2 (olmo2.cpp).
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

constexpr checkpoint::Dialect kDialect = {.model_type = "olmo3",
                                          .defaults = R"({"tie_word_embeddings": false})",
                                          .shares_gguf = true};
constexpr int kPeriod = 4;

DenseSpec spec(const checkpoint::Config& config) {
  DenseSpec spec = llama_spec(config);
  spec.attention_norms = {"", "post_attention_layernorm"};
  spec.mlp_norms = {"", "post_feedforward_layernorm"};
  spec.attention.qk_norm = nn::HeadNormOptions{.form = nn::HeadNormForm::across, .eps = config.norm_eps};
  spec.mlp.bias = false;
  spec.ropes[0].options.traditional = false;
  DenseRope sliding = spec.ropes[0];
  sliding.options.scaling.reset();
  sliding.takes_file_factors = false;
  spec.ropes.push_back(sliding);
  spec.layers.clear();
  const auto windows =
      config.layer_types.empty() ? windows_by_period(config, kPeriod) : windows_by_type(config);
  for (const std::optional<int>& window : windows)
    spec.layers.push_back({.window = window, .rope = window ? 1 : 0});
  return spec;
}

}  // namespace

const Family olmo3 = dense_family<spec>("olmo3", &kDialect);

}  // namespace godwit::models
