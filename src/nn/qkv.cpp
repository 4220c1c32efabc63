#include "nn/qkv.h"

#include <vector>

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/weight_store.h"

namespace godwit::nn {
namespace {

Linear first_of(const checkpoint::WeightScope& scope, const QkvShape& s, QkvPacking packing, bool bias) {
  const int q = s.heads * s.head_dim;
  if (packing == QkvPacking::separate) return Linear(scope / "q_proj", s.hidden, q, bias);
  if (packing == QkvPacking::gated) return Linear(scope / "q_proj", s.hidden, 2 * q, bias);
  if (scope.store().native())
    fail(ErrorCode::unsupported, "attention", "{}: native mode has no packed projection qkv_proj", scope.path());
  return Linear(scope / "qkv_proj", s.hidden, q + 2 * s.kv_heads * s.head_dim, bias);
}

}  // namespace

Qkv::Qkv(const checkpoint::WeightScope& scope, const QkvShape& s, QkvPacking packing, bool bias)
    : shape_(s), packing_(packing), first_(first_of(scope, s, packing, bias)) {
  if (packing != QkvPacking::separate && packing != QkvPacking::gated) return;
  k_.emplace(scope / "k_proj", s.hidden, s.kv_heads * s.head_dim, bias);
  v_.emplace(scope / "v_proj", s.hidden, s.kv_heads * s.head_dim, bias);
}

QkvHeads Qkv::operator()(const mx::array& x) const {
  const mx::array y = first_(x);
  if (packing_ == QkvPacking::stacked) return split_stacked(y);
  if (packing_ == QkvPacking::grouped) return split_grouped(y);
  const mx::array k = heads((*k_)(x), shape_.kv_heads), v = heads((*v_)(x), shape_.kv_heads);
  if (packing_ == QkvPacking::separate) return {heads(y, shape_.heads), k, v};
  // Two halves of each head, not of the whole row.
  const std::vector<mx::array> halves =
      mx::split(mx::reshape(y, {y.shape(0), shape_.heads, 2 * shape_.head_dim}), 2, -1);
  return {halves[0], k, v, halves[1]};
}

mx::array Qkv::heads(const mx::array& part, int count) const {
  return mx::reshape(part, {part.shape(0), count, shape_.head_dim});
}

QkvHeads Qkv::split_stacked(const mx::array& y) const {
  const mx::array heads = mx::reshape(y, {y.shape(0), shape_.heads + 2 * shape_.kv_heads, shape_.head_dim});
  const std::vector<mx::array> parts = mx::split(heads, mx::Shape{shape_.heads, shape_.heads + shape_.kv_heads}, 1);
  return {parts[0], parts[1], parts[2]};
}

QkvHeads Qkv::split_grouped(const mx::array& y) const {
  const int tokens = y.shape(0), queries = shape_.heads / shape_.kv_heads;
  const mx::array groups = mx::reshape(y, {tokens, shape_.kv_heads, queries + 2, shape_.head_dim});
  const std::vector<mx::array> parts = mx::split(groups, mx::Shape{queries, queries + 1}, 2);
  const auto heads = [&](const mx::array& part, int count) {
    return mx::reshape(part, {tokens, count, shape_.head_dim});
  };
  return {heads(parts[0], shape_.heads), heads(parts[1], shape_.kv_heads), heads(parts[2], shape_.kv_heads)};
}

}  // namespace godwit::nn
