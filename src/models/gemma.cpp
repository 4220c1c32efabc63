// Gemma: llama with norms by 1 + w, a gate by the exact GELU, embeddings times the root of the width, and
// always a tied head. Truth: mlx_lm/models/gemma.py, which does not read hidden_activation: the tanh form
// that it may name is not run.
#include <array>
#include <cmath>

#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "gemma", .norms_include_one = true}}};
constexpr std::array<checkpoint::Spelling, 2> kUnread = {
    {{"hidden_activation", "gelu_pytorch_tanh"}, {"hidden_act", "gelu_pytorch_tanh"}}};
constexpr checkpoint::Dialect kDialect = {
    .model_type = "gemma", .gguf = kGguf, .reads_windows = false, .unread = kUnread};

DenseSpec spec(const checkpoint::Config& config) {
  if (!config.from_gguf) config.integer("head_dim");  // heads times head_dim may exceed the hidden size
  require_rope_types(config);
  DenseSpec spec = llama_spec(config);
  spec.norm.gain = nn::NormGain::one_plus_weight;
  spec.attention.qkv_bias = spec.attention.output_bias = spec.mlp.bias = false;
  spec.mlp.activation = nn::Activation::gelu;
  spec.activation_aliases = {"gelu_pytorch_tanh"};
  spec.embedding_scale = mx::array(static_cast<float>(std::sqrt(config.hidden)));
  spec.tie = DenseTie::tied;
  return spec;
}

}  // namespace

const Family gemma = dense_family<spec>("gemma", &kDialect);

}  // namespace godwit::models
