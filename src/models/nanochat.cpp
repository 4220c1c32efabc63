// nanochat: norms without weights (one behind the embedding, too, and on q and k behind their rotation),
// rotation by negative angles, an MLP without a gate by the squared ReLU, a soft cap on the logits, never a
// tied head. Truth: mlx_lm/models/nanochat.py, which fixes the epsilon and the cap: rms_norm_eps and
// final_logit_softcapping are not read.
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

constexpr double kEps = 1e-5;
constexpr checkpoint::Dialect kDialect = {
    .model_type = "nanochat",
    .defaults = R"({"hidden_size": 1280, "num_hidden_layers": 20, "intermediate_size": 5120,
                    "num_attention_heads": 10, "num_key_value_heads": 10, "vocab_size": 65536, "rms_norm_eps": 1e-5,
                    "max_position_embeddings": 2048})",
    .reads_windows = false};

DenseSpec spec(const checkpoint::Config& config) {
  require_rope_types(config);
  DenseSpec spec = llama_spec(config);
  spec.norm = {.eps = kEps, .gain = nn::NormGain::none};
  spec.embedding_norm = spec.norm;
  spec.attention.qkv_bias = spec.attention.output_bias = spec.mlp.bias = false;
  spec.attention.qk_norm = nn::HeadNormOptions{.gain = nn::NormGain::none, .eps = kEps, .after_rope = true};
  spec.mlp.form = nn::MlpForm::plain;
  spec.mlp.activation = nn::Activation::relu2;
  spec.ropes[0].options.traditional = false;
  spec.ropes[0].options.backwards = true;
  spec.head.soft_cap = 15.0;
  spec.tie = DenseTie::untied;
  spec.names = {{"transformer.wte", "model.embed_tokens"},
                {"transformer.h", "model.layers"},
                {"attn.c_q", "self_attn.q_proj"},
                {"attn.c_k", "self_attn.k_proj"},
                {"attn.c_v", "self_attn.v_proj"},
                {"attn.c_proj", "self_attn.o_proj"},
                {"mlp.c_fc", "mlp.up_proj"},
                {"mlp.c_proj", "mlp.down_proj"}};
  return spec;
}

}  // namespace

const Family nanochat = dense_family<spec>("nanochat", &kDialect);

}  // namespace godwit::models
