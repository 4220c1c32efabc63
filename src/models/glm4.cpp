// GLM-4 (0414): a norm before and behind each branch, rotation of neighbouring pairs over a part of each
// head, one matrix for gate and up, no bias on the output projection, never a tied head. Truth:
// mlx_lm/models/glm4.py.
#include <array>

#include "base/error.h"
#include "checkpoint/gguf.h"
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

// Files of its multimodal kin share the architecture: their rows lie in another order.
void refuse_kin(const checkpoint::GgufFile& file, Json&) {
  for (const char* const key : {"glm4.rope.dimension_sections", "glm4.nextn_predict_layers"})
    if (file.metadata.has(key))
      fail(ErrorCode::unsupported, "glm4", "{}: {} is set: only plain text models of glm4 can be read",
           file.metadata.origin(), key);
}

constexpr std::array<checkpoint::Spelling, 3> kNames = {{{"post_attention_norm", "post_self_attn_layernorm"},
                                                         {"post_ffw_norm", "post_mlp_layernorm"},
                                                         {"ffn_up", "mlp.gate_up_proj"}}};
constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "glm4", .names = kNames, .complete = refuse_kin}}};
constexpr checkpoint::Dialect kDialect = {
    .model_type = "glm4", .defaults = R"({"rope_traditional": true})", .gguf = kGguf, .reads_windows = false};

DenseSpec spec(const checkpoint::Config& config) {
  if (!config.from_gguf) {  // keys without a default: the graph would be another
    config.boolean("attention_bias");
    config.integer("head_dim");
  }
  require_rope_types(config);
  DenseSpec spec = llama_spec(config);
  spec.attention_norms = {"input_layernorm", "post_self_attn_layernorm"};
  spec.mlp_norms = {"post_attention_layernorm", "post_mlp_layernorm"};
  spec.attention.output_bias = spec.mlp.bias = false;
  spec.mlp.form = nn::MlpForm::gated_packed;
  spec.ropes = {{.options = partial_rope(config)}};
  spec.tie = DenseTie::untied;
  return spec;
}

}  // namespace

const Family glm4 = dense_family<spec>("glm4", &kDialect);

}  // namespace godwit::models
