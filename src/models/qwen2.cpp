// Qwen2 and Qwen2.5: the llama graph with biases on q, k and v alone. Truth: mlx_lm/models/qwen2.py.
#include <array>

#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {{{.architecture = "qwen2"}}};
constexpr checkpoint::Dialect kDialect = {
    .model_type = "qwen2",
    .defaults = R"({"rope_theta": 1000000.0, "tie_word_embeddings": true})",
    .gguf = kGguf,
    .reads_windows = false};

DenseSpec spec(const checkpoint::Config& config) {
  DenseSpec spec = llama_spec(config);
  spec.attention.qkv_bias = true;
  spec.attention.output_bias = spec.mlp.bias = false;
  return spec;
}

}  // namespace

const Family qwen2 = measured_in_native(dense_family<spec>("qwen2", &kDialect));

}  // namespace godwit::models
