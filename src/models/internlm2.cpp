// InternLM2: the llama graph with q, k and v in one matrix by key heads, one flag for the biases of the
// attention, and names of its own. Truth: mlx_lm/models/internlm2.py. Converters to GGUF take the matrix
// apart.
#include <array>

#include "checkpoint/gguf.h"
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

void add_bias(const checkpoint::GgufFile& file, Json& config) {
  config["bias"] = file.has("blk.0.attn_q.bias");
}

constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "internlm2", .rows_are_permuted = true, .complete = add_bias}}};
constexpr checkpoint::Dialect kDialect = {
    .model_type = "internlm2",
    .defaults = R"({"bias": true, "tie_word_embeddings": false, "max_position_embeddings": 32768})",
    .gguf = kGguf,
    .reads_windows = false};

DenseSpec spec(const checkpoint::Config& config) {
  require_plain_heads(config);
  require_rope_types(config, {"linear", "dynamic"});
  DenseSpec spec = llama_spec(config);
  spec.attention.packing = config.from_gguf ? nn::QkvPacking::separate : nn::QkvPacking::grouped;
  spec.attention.qkv_bias = spec.attention.output_bias = config.boolean("bias");
  spec.mlp.bias = false;
  spec.drop = {"attention.rope.inv_freq"};
  spec.names = {{"tok_embeddings", "embed_tokens"},
                {"output", "lm_head"},
                {"attention", "self_attn"},
                {"attention_norm", "input_layernorm"},
                {"wqkv", "qkv_proj"},
                {"wo", "o_proj"},
                {"feed_forward", "mlp"},
                {"ffn_norm", "post_attention_layernorm"},
                {"w1", "gate_proj"},
                {"w2", "down_proj"},
                {"w3", "up_proj"}};
  return spec;
}

}  // namespace

const Family internlm2 = dense_family<spec>("internlm2", &kDialect);

}  // namespace godwit::models
