// EXAONE 3 and 3.5: the llama graph under names of its own. Truth: mlx_lm/models/exaone.py.
#include <array>

#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

constexpr std::array<checkpoint::Spelling, 1> kKeys = {{{"num_layers", "num_hidden_layers"}}};
constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {{{.architecture = "exaone"}}};
constexpr checkpoint::Dialect kDialect = {
    .model_type = "exaone", .keys = kKeys, .gguf = kGguf, .reads_windows = false};

DenseSpec spec(const checkpoint::Config& config) {
  require_plain_heads(config);
  DenseSpec spec = llama_spec(config);
  spec.names = {{"transformer.wte", "model.embed_tokens"},
                {"transformer.h", "model.layers"},
                {"transformer.ln_f", "model.norm"},
                {"ln_1", "input_layernorm"},
                {"ln_2", "post_attention_layernorm"},
                {"attn.attention", "self_attn"},
                {"out_proj", "o_proj"},
                {"c_fc_0", "gate_proj"},
                {"c_fc_1", "up_proj"},
                {"c_proj", "down_proj"}};
  return spec;
}

}  // namespace

const Family exaone = dense_family<spec>("exaone", &kDialect);

}  // namespace godwit::models
