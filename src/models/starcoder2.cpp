// StarCoder2: layer norms, biases on every projection, an MLP without a gate by the exact GELU. Truth:
// mlx_lm/models/starcoder2.py, which reads every layer in full (sliding_window is not applied) and does not
// read hidden_act: the tanh form that it names is not run.
#include <array>

#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {{{.architecture = "starcoder2"}}};
constexpr std::array<checkpoint::Spelling, 1> kUnread = {{{"hidden_act", "gelu_pytorch_tanh"}}};
constexpr checkpoint::Dialect kDialect = {
    .model_type = "starcoder2",
    .defaults = R"({"norm_epsilon": 1e-5, "vocab_size": 49152, "rope_theta": 100000.0})",
    .gguf = kGguf,
    .reads_windows = false,
    .unread = kUnread};

DenseSpec spec(const checkpoint::Config& config) {
  require_rope_types(config);
  DenseSpec spec = llama_spec(config);
  spec.norm = {.eps = norm_eps_by(config, "norm_epsilon"), .kind = nn::NormKind::layer, .bias = true};
  spec.attention.qkv_bias = spec.attention.output_bias = spec.mlp.bias = true;
  spec.mlp.form = nn::MlpForm::plain;
  spec.mlp.activation = nn::Activation::gelu;
  spec.activation_aliases = {"gelu_pytorch_tanh"};
  spec.ropes[0].options.traditional = false;
  spec.names = {{"mlp.c_fc", "mlp.up_proj"}, {"mlp.c_proj", "mlp.down_proj"}};
  return spec;
}

}  // namespace

const Family starcoder2 = dense_family<spec>("starcoder2", &kDialect);

}  // namespace godwit::models
