// One row's tokens through a gated delta layer, in both numeric modes. Private to cache.
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
// `reference`: a graph, op for op GatedDeltaNet.__call__ of mlx-lm 0.32.2 (qwen3_next.py, qwen3_5.py;
// gated_delta.py's normalize_qk, compute_g and gated_delta_ops), from the convolution to the recurrence, for
// one row without a mask. The tail has mixed's dtype, and out too. `native`: computed at once by our kernels
// in f32 (ops/gated_delta.h); `runtime` null: on this thread alone, same bits. out has mixed's dtype, the
// tail is f32.
GatedDeltaResult gated_delta(const RecurrentNeed& need, const RecurrentRef& previous,
                             const RecurrentInputs& inputs, NumericMode mode,
                             ops::NativeRuntime* runtime = nullptr);

}  // namespace godwit::cache
