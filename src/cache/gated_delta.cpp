#include "cache/gated_delta.h"

#include <optional>
#include <utility>

#include "base/error.h"
#include "base/mx_ops.h"

namespace godwit::cache {
namespace {

constexpr double kUnitEpsilon = 1e-6;  // under the root of the sum of squares

struct Moved {
  mx::array out;    // [1, value_heads, value_dim]
  mx::array state;  // [1, value_heads, value_dim, key_dim]
};

// x [1, tokens, ...] at one token: [1, ...].
mx::array token_of(const mx::array& x, int token) {
  mx::Shape begin(x.ndim(), 0), end = x.shape();
  begin[1] = token;
  end[1] = token + 1;
  return mx::squeeze(mx::slice(x, std::move(begin), std::move(end)), 1);
}

// One token; q, k [1, value_heads, key_dim], v [1, value_heads, value_dim], decay, update [1, value_heads].
Moved delta_step(const mx::array& q, const mx::array& k, const mx::array& v, const mx::array& decay,
                 const mx::array& update, const mx::array& before) {
  const mx::array keys = mx::expand_dims(k, -2);
  mx::array state = before * mx::expand_dims(decay, {-2, -1});
  const mx::array held = mx::sum(state * keys, -1);
  const mx::array delta = (v - held) * mx::expand_dims(update, -1);
  state = state + keys * mx::expand_dims(delta, -1);
  const mx::array out = mx::sum(state * mx::expand_dims(q, -2), -1);
  return {mx::astype(out, q.dtype()), state};
}

// exp(-exp(a_log) * softplus(a + dt_bias)), f32.
mx::array decay_of(const RecurrentInputs& inputs) {
  const mx::array step = inputs.decay + inputs.dt_bias;
  const mx::array softplus = mx::logaddexp(step, scalar_like(0, step));
  const mx::array a_log = mx::astype(inputs.a_log, mx::float32);
  return mx::exp((inputs.a_log_is_rate ? a_log : mx::negative(mx::exp(a_log))) * softplus);
}

mx::array rms(const mx::array& x, double epsilon, double scale) {
  const mx::array unit = mx::fast::rms_norm(x, std::nullopt, static_cast<float>(epsilon));
  return scalar_like(scale, unit) * unit;
}

struct Heads {
  mx::array q, k, v;  // [1, tokens, heads, dim]
};

Heads heads_of(const RecurrentNeed& need, const mx::array& conv_out, int tokens) {
  const int key_channels = need.key_heads * need.key_dim;
  const std::vector<mx::array> parts = mx::split(conv_out, mx::Shape{key_channels, 2 * key_channels}, -1);
  const mx::Shape keys{1, tokens, need.key_heads, need.key_dim};
  const double inverse = std::pow(static_cast<double>(need.key_dim), -0.5);
  Heads heads{rms(mx::reshape(parts[0], keys), kUnitEpsilon * inverse * inverse, inverse * inverse),
              rms(mx::reshape(parts[1], keys), kUnitEpsilon * inverse * inverse, inverse),
              mx::reshape(parts[2], {1, tokens, need.value_heads, need.value_dim})};
  if (const int repeats = need.value_heads / need.key_heads; repeats > 1) {
    heads.q = mx::repeat(heads.q, repeats, -2);
    heads.k = mx::repeat(heads.k, repeats, -2);
  }
  return heads;
}

}  // namespace

void check_recurrent(const RecurrentNeed& need, const RecurrentInputs& inputs, int tokens) {
  const auto is = [](const mx::array& x, const mx::Shape& shape) { return x.shape() == shape; };
  GODWIT_CHECK(need.channels == 2 * need.key_heads * need.key_dim + need.value_heads * need.value_dim,
               "{} channels are not those of q, k and v", need.channels);
  GODWIT_CHECK(is(inputs.mixed, {tokens, need.channels}), "mixed is not [{}, {}]", tokens, need.channels);
  GODWIT_CHECK(is(inputs.conv_weight, {need.channels, need.kernel}), "conv_weight is not [{}, {}]",
               need.channels, need.kernel);
  GODWIT_CHECK(is(inputs.decay, {tokens, need.value_heads}) && is(inputs.update, {tokens, need.value_heads}),
               "decay or update is not [{}, {}]", tokens, need.value_heads);
  GODWIT_CHECK(is(inputs.a_log, {need.value_heads}) && is(inputs.dt_bias, {need.value_heads}),
               "a_log or dt_bias is not [{}]", need.value_heads);
}

RecurrentInputs slice_tokens(const RecurrentInputs& inputs, int begin, int end) {
  const auto cut = [&](const mx::array& x) {
    if (begin == 0 && end == x.shape(0)) return x;
    return mx::slice(x, {begin, 0}, {end, x.shape(1)});
  };
  RecurrentInputs part = inputs;
  part.mixed = cut(inputs.mixed);
  part.decay = cut(inputs.decay);
  part.update = cut(inputs.update);
  return part;
}

GatedDeltaResult gated_delta(const RecurrentNeed& need, const RecurrentRef& previous,
                             const RecurrentInputs& inputs) {
  check_recurrent(need, inputs, inputs.mixed.shape(0));
  GODWIT_CHECK(inputs.mixed.shape(0) > 0, "a recurrent step over no tokens");
  const int tokens = inputs.mixed.shape(0), kept = need.kernel - 1;
  const mx::array tail = previous ? previous->tail : mx::zeros({kept, need.channels}, inputs.mixed.dtype());
  const mx::array conv_input =
      mx::concatenate({mx::expand_dims(tail, 0), mx::expand_dims(inputs.mixed, 0)}, 1);
  const mx::array next_tail = mx::contiguous(mx::slice(conv_input, {0, tokens, 0}, conv_input.shape()));
  const mx::array mixed =
      mx::conv1d(conv_input, mx::expand_dims(inputs.conv_weight, 2), 1, 0, 1, need.channels);
  const Heads heads = heads_of(need, mixed * mx::sigmoid(mixed), tokens);

  const mx::array update = mx::expand_dims(mx::sigmoid(inputs.update), 0);
  const mx::array decay = mx::expand_dims(decay_of(inputs), 0);
  mx::array state = previous ? mx::expand_dims(previous->state, 0)
                             : mx::zeros({1, need.value_heads, need.value_dim, need.key_dim}, mx::float32);
  std::vector<mx::array> outs;
  for (int t = 0; t < tokens; ++t) {
    Moved moved = delta_step(token_of(heads.q, t), token_of(heads.k, t), token_of(heads.v, t),
                             token_of(decay, t), token_of(update, t), state);
    outs.push_back(std::move(moved.out));
    state = std::move(moved.state);
  }
  return {mx::squeeze(mx::stack(outs, 1), 0), mx::squeeze(state, 0), mx::squeeze(next_tail, 0)};
}

}  // namespace godwit::cache
