// MiMo: the llama graph with biases on q, k and v alone; its layers for predicting several tokens are left
// out. Truth: mlx_lm/models/mimo.py.
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

constexpr checkpoint::Dialect kDialect = {
    .model_type = "mimo",
    .defaults = R"({"tie_word_embeddings": false, "max_position_embeddings": 32768})",
    .reads_windows = false};

DenseSpec spec(const checkpoint::Config& config) {
  require_plain_heads(config);
  DenseSpec spec = llama_spec(config);
  spec.attention.qkv_bias = true;
  spec.attention.output_bias = spec.mlp.bias = false;
  spec.drop.emplace_back("model.mtp_layers.");
  return spec;
}

}  // namespace

const Family mimo = dense_family<spec>("mimo", &kDialect);

}  // namespace godwit::models
