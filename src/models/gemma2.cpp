// Gemma 2: sandwich norms by 1 + w, a gate by the tanh GELU, soft caps on scores and logits, a score scale of
// its own, embeddings times the root of the width, always a tied head. Truth: mlx_lm/models/gemma2.py, which
// reads every layer in full: sliding_window is not applied.
#include <array>
#include <cmath>

#include "base/error.h"
#include "models/dense.h"
#include "models/families.h"
#include "models/gemma_dialect.h"

namespace godwit::models {
namespace {

using checkpoint::Config;

constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "gemma2", .norms_include_one = true, .names = kGemmaGgufNames, .complete = add_gemma_scale<46>}}};
constexpr checkpoint::Dialect kDialect = {
    .model_type = "gemma2",
    .defaults =
        R"({"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "query_pre_attn_scalar": 144.0})",
    .gguf = kGguf,
    .reads_windows = false,
    .nulls = R"({"attn_logit_softcapping": 0.0, "final_logit_softcapping": 0.0})"};

double cap_of(const Config& config, std::optional<double> cap, std::string_view key) {
  if (!cap || !(*cap > 0))
    fail(ErrorCode::unsupported, "gemma2", "{}: {} must be above 0", config.origin, key);
  return *cap;
}

DenseSpec spec(const Config& config) {
  if (!config.from_gguf) config.integer("head_dim");  // heads times head_dim may exceed the hidden size
  require_rope_types(config);
  DenseSpec spec = llama_spec(config);
  spec.norm.gain = nn::NormGain::one_plus_weight;
  spec.attention_norms = {"input_layernorm", "post_attention_layernorm"};
  spec.mlp_norms = {"pre_feedforward_layernorm", "post_feedforward_layernorm"};
  spec.attention.qkv_bias = spec.attention.output_bias = spec.mlp.bias = false;
  spec.attention.scale = 1.0 / std::sqrt(config.query_pre_attn_scalar.value());
  spec.attention.soft_cap =
      static_cast<float>(cap_of(config, config.attn_logit_softcapping, "attn_logit_softcapping"));
  spec.mlp.activation = nn::Activation::gelu_approx;
  spec.embedding_scale = mx::array(static_cast<float>(std::sqrt(config.hidden)));
  spec.head.soft_cap = cap_of(config, config.final_logit_softcapping, "final_logit_softcapping");
  spec.tie = DenseTie::tied;
  return spec;
}

}  // namespace

const Family gemma2 = dense_family<spec>("gemma2", &kDialect);

}  // namespace godwit::models
