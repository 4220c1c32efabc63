#pragma once

#include "kernels/gated-inl.h"
#include "kernels/gated_delta.h"
#include "kernels/level.h"
#include "kernels/log1p-inl.h"

namespace godwit::kernels {
namespace {

// fn(index, n) for the runs of sixteen elements of [0, count); n < 16 in the last.
template <class Fn>
[[gnu::always_inline]] inline void for_lanes(std::int64_t begin, std::int64_t end, Fn&& fn) {
  std::int64_t i = begin;
  for (; i + 16 <= end; i += 16) fn(i, std::int64_t{16});
  if (i < end) fn(i, end - i);
}

template <class V>
[[gnu::always_inline]] inline V load_up_to(const float* p, std::int64_t n) {
  return n == 16 ? V::load(p) : V::load_first(p, n);
}

template <class V>
[[gnu::always_inline]] inline void store_up_to(V x, float* p, std::int64_t n) {
  if (n == 16) return x.store(p);
  x.store_first(p, n);
}

// Input `token` of n channels from `channel` on; tokens before 0 come from the tail.
template <class V>
[[gnu::always_inline]] inline V conv_input(const ShortConvArgs& a, std::int64_t token, std::int64_t channel,
                                           std::int64_t n) {
  if (token >= 0) return load_up_to<V>(a.x + token * a.x_stride + channel, n);
  if (!a.tail) return V::zero();
  return load_up_to<V>(a.tail + (a.kernel - 1 + token) * a.channels + channel, n);
}

template <class V>
void conv_lanes(const ShortConvArgs& a, std::int64_t channel, std::int64_t n) {
  float taps[kMaxConvolution * 16] = {};  // of these channels, side by side
  for (std::int64_t c = 0; c < n; c++)
    for (std::int64_t j = 0; j < a.kernel; j++) taps[j * 16 + c] = a.weight[(channel + c) * a.kernel + j];
  for (std::int64_t token = a.token_begin; token < a.token_end; token++) {
    const std::int64_t first = token - a.kernel + 1;
    V sum = V::load(taps) * conv_input<V>(a, first, channel, n);
    for (std::int64_t j = 1; j < a.kernel; j++)
      sum = V::fma(V::load(taps + j * 16), conv_input<V>(a, first + j, channel, n), sum);
    store_up_to(times_sigmoid(sum, sum), a.y + (token - a.token_begin) * a.y_stride + channel, n);
  }
}

template <class V>
Level short_conv_body(const ShortConvArgs& a) {
  for_lanes(a.channel_begin, a.channel_end,
            [&](std::int64_t channel, std::int64_t n) { conv_lanes<V>(a, channel, n); });
  return V::kLevel;
}

template <class V>
Level unit_length_body(const UnitLengthArgs& a) {
  for (std::int64_t row = 0; row < a.rows; row++) {
    float* const x = a.x + row * a.x_stride;
    V squares = V::zero();
    for_lanes(0, a.n, [&](std::int64_t i, std::int64_t n) {
      const V part = load_up_to<V>(x + i, n);
      squares = V::fma(part, part, squares);
    });
    const V factor = V::set1(a.scale) / V::sqrt(V::set1(squares.sum() + a.epsilon));
    for_lanes(0, a.n, [&](std::int64_t i, std::int64_t n) {
      store_up_to(load_up_to<V>(x + i, n) * factor, x + i, n);
    });
  }
  return V::kLevel;
}

template <class V>
Level delta_gates_body(const DeltaGatesArgs& a) {
  for (std::int64_t token = 0; token < a.tokens; token++) {
    const std::int64_t row = token * a.heads;
    for_lanes(0, a.heads, [&](std::int64_t h, std::int64_t n) {
      const V rate = exp(load_up_to<V>(a.a_log + h, n));
      const V step = softplus(load_up_to<V>(a.a + row + h, n) + load_up_to<V>(a.dt_bias + h, n));
      store_up_to(exp(V::negate(rate * step)), a.decay + row + h, n);
      store_up_to(times_sigmoid(V::set1(1.0f), load_up_to<V>(a.b + row + h, n)), a.update + row + h, n);
    });
  }
  return V::kLevel;
}

// kRows neighbouring rows of one value head share the reads of k and q; a row's bits do not depend on its
// neighbours. `row` counts over all heads.
template <class V, int kRows>
void delta_rows(const DeltaRuleArgs& a, std::int64_t row) {
  const std::int64_t head = row / a.value_dim;
  const std::int64_t key_head = a.has_tiled_values ? head % a.key_heads : head / (a.value_heads / a.key_heads);
  float* const state = a.state_out + row * a.key_dim;
  if (a.state_in != a.state_out)
    for (std::int64_t i = 0; i < kRows * a.key_dim; i++)
      state[i] = a.state_in ? a.state_in[row * a.key_dim + i] : 0.0f;
  for (std::int64_t token = 0; token < a.tokens; token++) {
    const float* const q = a.q + token * a.qkv_stride + key_head * a.key_dim;
    const float* const k = a.k + token * a.qkv_stride + key_head * a.key_dim;
    const float* const v = a.v + token * a.qkv_stride + row;
    const float decay = a.decay[token * a.value_heads + head];
    const float update = a.update[token * a.value_heads + head];
    V sums[kRows], deltas[kRows];
    for (V& sum : sums) sum = V::zero();
    for_lanes(0, a.key_dim, [&](std::int64_t i, std::int64_t n) {
      const V key = load_up_to<V>(k + i, n);
      for (int r = 0; r < kRows; r++)
        sums[r] = V::fma(load_up_to<V>(state + r * a.key_dim + i, n), key, sums[r]);
    });
    for (int r = 0; r < kRows; r++) {
      const float held = decay * sums[r].sum();
      deltas[r] = V::set1((v[r] - held) * update);
      sums[r] = V::zero();
    }
    const V decays = V::set1(decay);
    for_lanes(0, a.key_dim, [&](std::int64_t i, std::int64_t n) {
      const V key = load_up_to<V>(k + i, n), query = load_up_to<V>(q + i, n);
      for (int r = 0; r < kRows; r++) {
        float* const place = state + r * a.key_dim + i;
        const V moved = V::fma(key, deltas[r], load_up_to<V>(place, n) * decays);
        store_up_to(moved, place, n);
        sums[r] = V::fma(moved, query, sums[r]);
      }
    });
    if (!a.out) continue;
    for (int r = 0; r < kRows; r++) a.out[token * a.out_stride + row + r] = sums[r].sum();
  }
}

template <class V>
Level delta_rule_body(const DeltaRuleArgs& a) {
  constexpr int kTogether = 4;
  for (std::int64_t row = a.row_begin; row < a.row_end;) {
    const std::int64_t left_in_head = a.value_dim - row % a.value_dim;
    if (row + kTogether <= a.row_end && kTogether <= left_in_head) {
      delta_rows<V, kTogether>(a, row);
      row += kTogether;
    } else {
      delta_rows<V, 1>(a, row++);
    }
  }
  return V::kLevel;
}

}  // namespace
}  // namespace godwit::kernels
