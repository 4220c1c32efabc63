// InternLM3: the llama graph with one flag for the biases of the attention and one for those of the MLP.
// Truth: mlx_lm/models/internlm3.py. Its GGUF files call themselves llama.
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

constexpr checkpoint::Dialect kDialect = {
    .model_type = "internlm3",
    .defaults = R"({"tie_word_embeddings": false, "max_position_embeddings": 32768})",
    .reads_windows = false};

DenseSpec spec(const checkpoint::Config& config) {
  require_plain_heads(config);
  require_rope_types(config, {"linear", "dynamic"});
  DenseSpec spec = llama_spec(config);
  spec.attention.qkv_bias = spec.attention.output_bias = config.boolean("qkv_bias", false);
  spec.mlp.bias = config.boolean("bias", false);
  spec.drop.emplace_back("attention.rope.inv_freq");
  return spec;
}

}  // namespace

const Family internlm3 = dense_family<spec>("internlm3", &kDialect);

}  // namespace godwit::models
