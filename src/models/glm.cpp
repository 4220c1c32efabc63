// GLM: llama with rotation of neighbouring pairs, one matrix for gate and up, and no bias on the output
// projection. Truth: mlx_lm/models/glm.py, which turns the whole head: a partial_rotary_factor of a config is
// not read; the part that a GGUF file names is.
#include <array>

#include "checkpoint/gguf.h"
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

// Files of the ChatGLM names have q, k and v in one matrix.
void add_packing(const checkpoint::GgufFile& file, Json& config) {
  const bool is_packed = file.has("blk.0.attn_qkv.weight");
  config["packed_qkv"] = is_packed;
  if (is_packed) config["attention_bias"] = file.has("blk.0.attn_qkv.bias");
}

constexpr std::array<checkpoint::Spelling, 2> kNames = {
    {{"attn_qkv", "self_attn.qkv_proj"}, {"ffn_up", "mlp.gate_up_proj"}}};
constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "chatglm", .names = kNames, .complete = add_packing}}};
constexpr checkpoint::Dialect kDialect = {.model_type = "glm", .gguf = kGguf, .reads_windows = false};

DenseSpec spec(const checkpoint::Config& config) {
  require_rope_types(config);
  DenseSpec spec = llama_spec(config);
  spec.attention.output_bias = spec.mlp.bias = false;
  if (config.from_gguf && config.boolean("packed_qkv")) spec.attention.packing = nn::QkvPacking::stacked;
  spec.mlp.form = nn::MlpForm::gated_packed;
  spec.ropes[0].options.traditional = true;
  return spec;
}

}  // namespace

const Family glm = dense_family<spec>("glm", &kDialect);

}  // namespace godwit::models
