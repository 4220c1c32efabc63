// ERNIE 4.5 dense: the llama graph with neighbours turned as pairs and one flag for all biases.
// Truth: mlx_lm/models/ernie4_5.py.
#include <array>

#include "checkpoint/gguf.h"
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

void add_bias(const checkpoint::GgufFile& file, Json& config) {
  config["use_bias"] = file.has("blk.0.attn_q.bias");
}

// The rows lie as the checkpoint has them: it turns neighbours itself.
constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "ernie4_5", .complete = add_bias}}};
constexpr checkpoint::Dialect kDialect = {.model_type = "ernie4_5", .gguf = kGguf, .reads_windows = false};

DenseSpec spec(const checkpoint::Config& config) {
  config.boolean("tie_word_embeddings");  // both are required: there are no defaults
  const bool bias = config.boolean("use_bias");
  require_rope_types(config);
  DenseSpec spec = llama_spec(config);
  spec.attention.qkv_bias = spec.attention.output_bias = spec.mlp.bias = bias;
  spec.ropes[0].options.traditional = true;
  return spec;
}

}  // namespace

const Family ernie4_5 = dense_family<spec>("ernie4_5", &kDialect);

}  // namespace godwit::models
