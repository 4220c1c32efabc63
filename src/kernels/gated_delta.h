// The pieces of a gated delta layer (Gated Delta Networks, arXiv 2412.06464, as Qwen3-Next runs it), all f32:
// a short causal convolution per channel, keys and queries of unit length, gates, and the recurrence. What a
// token leaves depends on the tokens before it and not on how they were cut into calls.
//
// One token of one value head, with its key head's k and q and the state S [value_dim, key_dim]:
//   m[i] = decay * (sum over j of S[i][j] k[j])
//   d[i] = (v[i] - m[i]) * update
//   S[i][j] = S[i][j] * decay + k[j] d[i]        the product S * decay is rounded, then one fma
//   out[i] = sum over j of S[i][j] q[j]
// Sums run over sixteen lanes by fma, j ascending, and end in the one tree of all float sums.
#pragma once

#include <cstdint>

namespace godwit::kernels {

inline constexpr std::int64_t kMaxConvolution = 32;  // inputs that one output of the convolution sees

// y[t][c] = silu(sum over j of weight[c][j] x[t - kernel + 1 + j][c]), j ascending: a product, then fma.
struct ShortConvArgs {
  const float* x;       // [tokens, channels]
  const float* tail;    // [kernel - 1, channels], the inputs before x; null: zeros
  const float* weight;  // [channels, kernel]
  float* y;             // row 0 is token `token_begin`
  std::int64_t channels, kernel;
  std::int64_t token_begin, token_end;
  std::int64_t channel_begin, channel_end;  // the part that this call does
  std::int64_t x_stride, y_stride;          // elements from token to token
};

// x = x * (scale / sqrt(sum of x^2 + epsilon)), row by row, in place.
struct UnitLengthArgs {
  float* x;  // [rows, n], rows x_stride apart
  std::int64_t rows, n, x_stride;
  float epsilon, scale;
};

// decay = exp(-exp(a_log) * softplus(a + dt_bias)), update = 1 / (1 + exp(-b)).
struct DeltaGatesArgs {
  const float* a;        // [tokens, heads]
  const float* b;        // [tokens, heads]
  const float* a_log;    // [heads]
  const float* dt_bias;  // [heads]
  float* decay;          // [tokens, heads]
  float* update;         // [tokens, heads]
  std::int64_t tokens, heads;
};

// Moves rows [row_begin, row_end) of the state over the tokens, one after another.
struct DeltaRuleArgs {
  const float* q;         // [tokens, key_heads, key_dim], tokens qkv_stride apart
  const float* k;         // likewise
  const float* v;         // [tokens, value_heads, value_dim], likewise
  const float* decay;     // [tokens, value_heads]
  const float* update;    // [tokens, value_heads]
  const float* state_in;  // [value_heads, value_dim, key_dim]; null: zeros; may be state_out
  float* state_out;       // likewise
  float* out;             // [tokens, value_heads, value_dim], tokens out_stride apart; null: only the state
  std::int64_t tokens;
  std::int64_t key_heads, value_heads;  // value head h uses key head h / (value_heads / key_heads), or tiled
  std::int64_t key_dim, value_dim;
  std::int64_t qkv_stride, out_stride;  // in elements
  std::int64_t row_begin, row_end;      // of value_heads * value_dim
  bool has_tiled_values = false;        // value head h uses key head h % key_heads
};

}  // namespace godwit::kernels
