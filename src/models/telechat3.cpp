// TeleChat3: the llama graph, untied unless the config says otherwise, with a rope type of its own name.
// Truth: mlx_lm/models/telechat3.py.
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

constexpr checkpoint::Dialect kDialect = {
    .model_type = "telechat3", .defaults = R"({"tie_word_embeddings": false})", .reads_windows = false};

DenseSpec spec(const checkpoint::Config& config) {
  DenseSpec spec = llama_spec(config);
  spec.ropes[0].options.traditional = false;
  return spec;
}

}  // namespace

const Family telechat3 = dense_family<spec>("telechat3", &kDialect);

}  // namespace godwit::models
