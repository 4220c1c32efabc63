// Gemma 3 text: sandwich norms with gain 1 + w, q/k norms, GeGLU, embeddings times sqrt(hidden), and every
// n-th layer full while the others slide with a rotary base of their own. Truth:
// mlx_lm/models/gemma3_text.py.
#include "models/gemma3_text.h"

#include <array>
#include <cmath>

#include "base/error.h"
#include "base/mx_ops.h"
#include "models/families.h"
#include "models/gemma_dialect.h"

namespace godwit::models {
namespace {

using checkpoint::Config;

constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "gemma3", .norms_include_one = true, .names = kGemmaGgufNames, .complete = add_gemma_scale<62>}}};
constexpr checkpoint::Dialect kDialect = {
    .model_type = "gemma3_text",
    .defaults = R"({"hidden_size": 1152, "num_hidden_layers": 26, "intermediate_size": 6912,
                    "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "rms_norm_eps": 1e-6,
                    "vocab_size": 262144, "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
                    "query_pre_attn_scalar": 256, "sliding_window": 512, "sliding_window_pattern": 6,
                    "max_position_embeddings": 32768})",
    .gguf = kGguf};

constexpr auto kGain = nn::NormGain::one_plus_weight;

nn::Rope::Options sliding_rope(const Config& config) {
  nn::Rope::Options options;
  options.dims = config.head_dim;
  options.base = config.rope_local_theta.value_or(10000.0);
  return options;
}

}  // namespace

DenseSpec gemma3_text_spec(const Config& config) {
  DenseSpec spec = llama_spec(config);
  spec.norm.gain = kGain;
  spec.attention_norms = {"input_layernorm", "post_attention_layernorm"};
  spec.mlp_norms = {"pre_feedforward_layernorm", "post_feedforward_layernorm"};
  spec.residual_sum = nn::ResidualSum::clipped_f16;
  spec.attention.qkv_bias = spec.attention.output_bias = spec.mlp.bias = false;
  spec.attention.scale = std::pow(config.query_pre_attn_scalar.value_or(config.head_dim), -0.5);
  spec.attention.qk_norm = nn::HeadNormOptions{.gain = kGain, .eps = config.norm_eps};
  spec.mlp.activation = nn::Activation::gelu_approx;
  spec.ropes[0].options.traditional = false;
  spec.ropes.push_back({.options = sliding_rope(config), .takes_file_factors = false});
  spec.layers.clear();
  for (const std::optional<int>& window :
       windows_by_period(config, config.sliding_window_pattern.value_or(0)))
    spec.layers.push_back({.window = window, .rope = window ? 1 : 0});
  // √hidden is rounded to bf16 whatever the model's dtype.
  spec.embedding_scale = mx::array(std::sqrt(config.hidden), mx::bfloat16);
  spec.tie = DenseTie::when_absent;  // nothing in the config ties the head
  return spec;
}

const Family gemma3_text = measured_in_native(dense_family<gemma3_text_spec>("gemma3_text", &kDialect));

}  // namespace godwit::models
