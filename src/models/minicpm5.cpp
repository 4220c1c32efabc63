// MiniCPM5: llama's graph under a row of its own, since what stands around the graph (tokens, tool calls,
// promises) is another. Truth: mlx_lm/models/llama.py. The 2B has another shape and remains llama's.
#include "models/dense.h"
#include "models/families.h"
#include "models/llama_dialect.h"

namespace godwit::models {

bool is_minicpm5(const checkpoint::Config& config) {
  return config.layers == 24 && config.hidden == 1536 && config.heads == 16 && config.kv_heads == 2 &&
         config.head_dim == 128 && config.vocabulary == 130560 && !config.tie_word_embeddings.value_or(true);
}

const Family minicpm5 = dense_family<llama_spec>("minicpm5", &kLlamaDialect, is_minicpm5);

}  // namespace godwit::models
