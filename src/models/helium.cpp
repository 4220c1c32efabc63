// Helium: the llama graph with neighbours turned as pairs and no bias behind the attention.
// Truth: mlx_lm/models/helium.py.
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

constexpr checkpoint::Dialect kDialect = {.model_type = "helium", .reads_windows = false};

DenseSpec spec(const checkpoint::Config& config) {
  config.boolean("tie_word_embeddings");  // required: there is no default
  require_plain_heads(config);
  require_rope_types(config);
  DenseSpec spec = llama_spec(config);
  spec.attention.output_bias = false;
  spec.ropes[0].options.traditional = true;
  return spec;
}

}  // namespace

const Family helium = dense_family<spec>("helium", &kDialect);

}  // namespace godwit::models
