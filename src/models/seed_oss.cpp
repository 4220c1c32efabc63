// Seed-OSS: the llama graph with one flag for the biases of q, k and v and another for the output's.
// Truth: mlx_lm/models/seed_oss.py. A tied head on a quantized embedding has no oracle: mlx-lm multiplies by
// the packed words there.
#include <array>

#include "checkpoint/gguf.h"
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

void add_output_bias(const checkpoint::GgufFile& file, Json& config) {
  config["attention_out_bias"] = file.has("blk.0.attn_output.bias");
}

constexpr std::array<checkpoint::Spelling, 1> kNames = {
    {{"post_attention_norm", "post_attention_layernorm"}}};
constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "seed_oss", .names = kNames, .complete = add_output_bias}}};
constexpr checkpoint::Dialect kDialect = {.model_type = "seed_oss", .gguf = kGguf, .reads_windows = false};

DenseSpec spec(const checkpoint::Config& config) {
  DenseSpec spec = llama_spec(config);
  spec.attention.output_bias = config.boolean("attention_out_bias", false);
  return spec;
}

}  // namespace

const Family seed_oss = dense_family<spec>("seed_oss", &kDialect);

}  // namespace godwit::models
