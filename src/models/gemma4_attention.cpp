#include "models/gemma4_attention.h"

#include <utility>

#include "base/error.h"
#include "base/mx_ops.h"

namespace godwit::models {
namespace {

nn::NormOptions over_head(const Gemma4Attention::Options& o, nn::NormGain gain = nn::NormGain::weight) {
  return {.dims = o.head_dim, .eps = o.eps, .gain = gain};
}

}  // namespace

Gemma4Attention::Gemma4Attention(const checkpoint::WeightScope& scope, const Options& o, nn::Rope rope)
    : options_(o),
      rope_(std::move(rope)),
      q_(scope / "q_proj", o.hidden, o.heads * o.head_dim),
      o_(scope / "o_proj", o.heads * o.head_dim, o.hidden),
      q_norm_(scope / "q_norm", over_head(o)) {
  if (!o.owns_keys) return;
  k_.emplace(scope / "k_proj", o.hidden, o.kv_heads * o.head_dim);
  if (!o.keys_are_values) v_.emplace(scope / "v_proj", o.hidden, o.kv_heads * o.head_dim);
  k_norm_.emplace(scope / "k_norm", over_head(o));
  v_norm_.emplace(scope / "v_norm", over_head(o, nn::NormGain::none));
}

nn::MixerPlan Gemma4Attention::plan() const {
  fail(ErrorCode::unsupported, "gemma4", "native mode has no norm on values and no keys of another layer");
}

mx::array Gemma4Attention::heads_of(const mx::array& y, int heads) const {
  return mx::reshape(y, {y.shape(0), heads, options_.head_dim});
}

mx::array Gemma4Attention::operator()(const mx::array& x, const cache::Step& step,
                                      cache::LayerState& state) const {
  const cache::AttendSpec spec{.scale = 1.0f};
  const mx::array q = rope_(q_norm_(heads_of(q_(x), options_.heads)), step);
  mx::array out = q;
  if (!options_.owns_keys) {
    out = state.attend(q, spec);
  } else {
    const mx::array k = heads_of((*k_)(x), options_.kv_heads);
    const mx::array v = v_ ? heads_of((*v_)(x), options_.kv_heads) : k;
    out = state.attend(q, rope_((*k_norm_)(k), step), (*v_norm_)(v), spec);
  }
  return o_(mx::reshape(out, {x.shape(0), options_.heads * options_.head_dim}));
}

}  // namespace godwit::models
