#include "nn/attention.h"

#include <utility>

#include "base/error.h"
#include "base/mx_ops.h"

namespace godwit::nn {

Attention::Attention(const checkpoint::WeightScope& scope, const Options& o, std::optional<Rope> rope)
    : options_(o),
      q_(scope / "q_proj", o.hidden, o.heads * o.head_dim, o.qkv_bias),
      k_(scope / "k_proj", o.hidden, o.kv_heads * o.head_dim, o.qkv_bias),
      v_(scope / "v_proj", o.hidden, o.kv_heads * o.head_dim, o.qkv_bias),
      o_(scope / "o_proj", o.heads * o.head_dim, o.hidden, o.output_bias),
      rope_(std::move(rope)) {
  if (!o.qk_norm) return;
  q_norm_.emplace(scope / "q_norm", o.head_dim, o.norm_eps, *o.qk_norm);
  k_norm_.emplace(scope / "k_norm", o.head_dim, o.norm_eps, *o.qk_norm);
}

mx::array Attention::heads(const Linear& projection, const std::optional<RmsNorm>& norm, const mx::array& x,
                           int count) const {
  const mx::array y = mx::reshape(projection(x), {x.shape(0), count, options_.head_dim});
  return norm ? (*norm)(y) : y;
}

ops::AttentionPlan Attention::plan() const {
  if (options_.soft_cap != 0.0f)
    fail(ErrorCode::unsupported, "attention", "native attention has no soft cap ({})", options_.soft_cap);
  ops::AttentionPlan plan{.heads = options_.heads,
                          .kv_heads = options_.kv_heads,
                          .head_dim = options_.head_dim,
                          .scale = static_cast<float>(options_.scale),
                          .before = {},
                          .q = q_.native(),
                          .k = k_.native(),
                          .v = v_.native(),
                          .o = o_.native(),
                          .q_norm = {},
                          .k_norm = {},
                          .rope = {},
                          .after = {}};
  if (q_norm_) plan.q_norm = q_norm_->plan();
  if (k_norm_) plan.k_norm = k_norm_->plan();
  if (rope_) plan.rope = rope_->plan();
  return plan;
}

mx::array Attention::operator()(const mx::array& x, const cache::Step& step, cache::LayerState& state) const {
  const mx::array q = turned(heads(q_, q_norm_, x, options_.heads), step);
  const mx::array k = turned(heads(k_, k_norm_, x, options_.kv_heads), step);
  const mx::array v = heads(v_, std::nullopt, x, options_.kv_heads);
  cache::AttendSpec spec;
  spec.scale = static_cast<float>(options_.scale);
  spec.soft_cap = options_.soft_cap;
  const mx::array out = state.attend(q, k, v, spec);
  return o_(mx::reshape(out, {x.shape(0), options_.heads * options_.head_dim}));
}

}  // namespace godwit::nn
