// One row's tokens through a gated delta layer in `reference` mode. Private to cache.
#pragma once

#include "cache/recurrent_state.h"

namespace godwit::cache {

struct GatedDeltaResult {
  mx::array out;    // [tokens, value_heads, value_dim]
  mx::array state;  // [value_heads, value_dim, key_dim] f32
  mx::array tail;   // [kernel - 1, channels]
};

// Error{internal} unless the arrays have the shapes that state.h names, over `tokens` tokens.
void check_recurrent(const RecurrentNeed& need, const RecurrentInputs& inputs, int tokens);

// Tokens [begin, end) of every array that has tokens; the weights are shared.
RecurrentInputs slice_tokens(const RecurrentInputs& inputs, int begin, int end);

// Moves the memory `previous` (null: zeros) over the tokens of one row; `previous` stays as it is.
//
// A graph, op for op GatedDeltaNet.__call__ of mlx-lm 0.32.2 (qwen3_next.py, qwen3_5.py; gated_delta.py's
// normalize_qk, compute_g and gated_delta_ops), from the convolution to the recurrence, for one row without a
// mask. The tail has mixed's dtype, and out too. `native` mode has a primitive of its own (ops/gated_delta.h).
GatedDeltaResult gated_delta(const RecurrentNeed& need, const RecurrentRef& previous, const RecurrentInputs& inputs);

}  // namespace godwit::cache
