// Phi-1 to Phi-2: one layer norm for both branches side by side, queries in f32, an MLP without a gate,
// biases everywhere, the untied head included. Truth: mlx_lm/models/phi.py.
#include <array>
#include <cmath>

#include "base/error.h"
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

using checkpoint::Config;

constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {{{.architecture = "phi2"}}};
constexpr checkpoint::Dialect kDialect = {
    .model_type = "phi",
    .defaults =
        R"({"vocab_size": 51200, "hidden_size": 2560, "num_hidden_layers": 32, "intermediate_size": 10240,
                    "num_attention_heads": 32, "layer_norm_eps": 1e-5, "partial_rotary_factor": 0.4,
                    "max_position_embeddings": 2048})",
    .gguf = kGguf,
    .reads_windows = false};

DenseSpec spec(const Config& config) {
  require_rope_types(config);
  if (config.boolean("qk_layernorm", false))
    fail(ErrorCode::unsupported, "phi", "{}: qk_layernorm: the graph of phi has no norm of queries",
         config.origin);
  DenseSpec spec = llama_spec(config);
  spec.norm = {.eps = norm_eps_by(config, "layer_norm_eps"), .kind = nn::NormKind::layer, .bias = true};
  spec.parallel = ParallelBlock::Order::branches_first;
  spec.attention.qkv_bias = spec.attention.output_bias = spec.mlp.bias = spec.head.bias = true;
  spec.attention.scale = std::sqrt(1.0 / config.head_dim);
  spec.attention.widened = nn::Widened::always;
  spec.mlp.form = nn::MlpForm::plain;
  spec.mlp.activation = nn::Activation::gelu_approx;
  spec.activation_aliases = {"gelu_new"};
  spec.ropes = {{.options = partial_rope(config)}};
  spec.ropes[0].options.traditional = false;
  spec.tie = DenseTie::untied;
  spec.names = {{"final_layernorm", "norm"},
                {"self_attn.dense", "self_attn.o_proj"},
                {"mlp.fc1", "mlp.up_proj"},
                {"mlp.fc2", "mlp.down_proj"}};
  return spec;
}

}  // namespace

const Family phi = dense_family<spec>("phi", &kDialect);

}  // namespace godwit::models
