// Qwen3 dense: the llama graph with an RMS norm on each head of q and k, and no bias anywhere.
// Truth: mlx_lm/models/qwen3.py.
#include <array>

#include "base/error.h"
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {{{.architecture = "qwen3"}}};
constexpr checkpoint::Dialect kDialect = {
    .model_type = "qwen3", .rope_parameters = checkpoint::RopeParameters::second, .gguf = kGguf, .reads_windows = false};

DenseSpec spec(const checkpoint::Config& config) {
  // Both keys are required: heads times head_dim may exceed the hidden size, and releases differ in the head.
  config.boolean("tie_word_embeddings");
  if (!config.from_gguf) config.integer("head_dim");
  DenseSpec spec = llama_spec(config);
  spec.attention.qkv_bias = spec.attention.output_bias = spec.mlp.bias = false;
  spec.attention.qk_norm = nn::HeadNormOptions{.eps = config.norm_eps};
  spec.ropes[0].options.traditional = false;
  return spec;
}

}  // namespace

const Family qwen3 = measured_in_native(dense_family<spec>("qwen3", &kDialect));

}  // namespace godwit::models
