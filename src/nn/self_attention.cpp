#include "nn/self_attention.h"

#include <cmath>

#include "base/mx_ops.h"

namespace godwit::nn {
namespace {

QkvShape shape_of(const SelfAttention::Options& o) { return {o.hidden, o.heads, o.heads, o.hidden / o.heads}; }

// [tokens, heads, head_dim] <-> [1, heads, tokens, head_dim]
mx::array by_head(const mx::array& x) { return mx::expand_dims(mx::swapaxes(x, 0, 1), 0); }
mx::array by_token(const mx::array& x) { return mx::swapaxes(mx::squeeze(x, 0), 0, 1); }

}  // namespace

SelfAttention::SelfAttention(const checkpoint::WeightScope& scope, const Options& o)
    : hidden_(o.hidden),
      scale_(static_cast<float>(1.0 / std::sqrt(double(o.hidden) / o.heads))),
      qkv_(scope, shape_of(o), QkvPacking::separate, o.bias),
      o_(scope / "o_proj", o.hidden, o.hidden, o.bias) {}

mx::array SelfAttention::operator()(const mx::array& x) const {
  const QkvHeads heads = qkv_(x);
  const mx::array out =
      mx::fast::scaled_dot_product_attention(by_head(heads.q), by_head(heads.k), by_head(heads.v), scale_);
  return o_(mx::reshape(by_token(out), {x.shape(0), hidden_}));
}

}  // namespace godwit::nn
