#include "cache/dense_layer_state.h"

#include <algorithm>

#include "base/error.h"
#include "base/mx_ops.h"

namespace godwit::cache {
namespace {

// Packed [tokens, heads, dim] <-> [1, heads, tokens, dim]; both are views.
mx::array to_heads(const mx::array& packed) { return mx::expand_dims(mx::swapaxes(packed, 0, 1), 0); }
mx::array to_packed(const mx::array& heads) { return mx::swapaxes(mx::squeeze(heads, 0), 0, 1); }

mx::Dtype stored_dtype(const KvPolicy& policy, mx::Dtype model) {
  switch (policy.dense) {
    case DenseType::bf16:
      return mx::bfloat16;
    case DenseType::f16:
      return mx::float16;
    case DenseType::f32:
      return mx::float32;
    case DenseType::model:
      break;
  }
  return model;
}

void check_packed(const mx::array& x, int tokens, int heads, int dim, const char* name) {
  const bool fits =
      x.ndim() == 3 && x.shape(0) == tokens && (heads == 0 || x.shape(1) == heads) && x.shape(2) == dim;
  GODWIT_CHECK(fits, "{} is not [{}, {}, {}]", name, tokens, heads, dim);
}

}  // namespace

DenseLayerState::DenseLayerState(LayerMemory& memory, const LayerNeed& need, const KvPolicy& policy,
                                 int position, int tokens)
    : memory_(memory),
      need_(need),
      policy_(policy),
      position_(position),
      tokens_(tokens),
      ring_after_(memory.ring) {
  if (ring_after_) ring_after_->append(tokens);
}

mx::array DenseLayerState::attend(const mx::array& q, const mx::array& k, const mx::array& v,
                                  const AttendSpec& spec) {
  GODWIT_CHECK(!stored_, "a layer stored twice in one Step");
  check_packed(k, tokens_, need_.kv_heads, need_.key_dim, "k");
  check_packed(v, tokens_, need_.kv_heads, need_.value_dim, "v");
  memory_.planes.append(position_, memory_.first_kept,
                        mx::astype(to_heads(k), stored_dtype(policy_, k.dtype())),
                        mx::astype(to_heads(v), stored_dtype(policy_, v.dtype())));
  stored_ = true;
  return attend(q, spec);
}

mx::array DenseLayerState::attend(const mx::array& q, const AttendSpec& spec) {
  GODWIT_CHECK(stored_, "a layer was read before this Step stored its span");
  check_packed(q, tokens_, 0, need_.key_dim, "q");
  const Columns seen = visible(q.dtype());
  const Visibility visibility = {
      .kind = spec.kind, .queries = tokens_, .context = seen.count - tokens_, .window = window()};
  return to_packed(dense_attention(to_heads(q), seen.keys, seen.values, visibility, spec));
}

mx::array DenseLayerState::attend_block(const mx::array& q, const mx::array& k, const mx::array& v,
                                        const AttendSpec& spec) {
  GODWIT_CHECK(!stored_, "a block was attended after this Step stored its span");
  const int block = k.shape(0);
  check_packed(q, block, 0, need_.key_dim, "q");
  check_packed(k, block, need_.kv_heads, need_.key_dim, "k");
  check_packed(v, block, need_.kv_heads, need_.value_dim, "v");
  Columns seen{to_heads(k), to_heads(v), 0};
  if (!memory_.planes.empty() && position_ > 0) {
    const Columns before = context(q.dtype());
    seen = {mx::concatenate({before.keys, seen.keys}, 2), mx::concatenate({before.values, seen.values}, 2),
            before.count};
  }
  const Visibility visibility = {
      .kind = SpanKind::bidirectional, .queries = block, .context = seen.count, .window = window()};
  return to_packed(dense_attention(to_heads(q), seen.keys, seen.values, visibility, spec));
}

DenseLayerState::Columns DenseLayerState::visible(mx::Dtype dtype) const {
  const DensePlanes& planes = memory_.planes;
  const int count = ring_after_ ? ring_after_->columns() : end();
  if (!ring_after_ || ring_after_->temporal())
    return {mx::astype(planes.keys(end() - count, end()), dtype),
            mx::astype(planes.values(end() - count, end()), dtype), count};
  const std::vector<int> order = ring_after_->positions();
  return {mx::astype(planes.keys(order), dtype), mx::astype(planes.values(order), dtype), count};
}

std::shared_ptr<ops::KvLayer> DenseLayerState::native() {
  fail(ErrorCode::internal, "state", "a native primitive in a reference Step");
}

// What the first position behind the stored tokens may see, in position order.
DenseLayerState::Columns DenseLayerState::context(mx::Dtype dtype) const {
  const int count = window() > 0 ? std::min(window() - 1, position_) : position_;
  return {mx::astype(memory_.planes.keys(position_ - count, position_), dtype),
          mx::astype(memory_.planes.values(position_ - count, position_), dtype), count};
}

void DenseLayerState::publish() noexcept {
  if (!ring_after_) return;
  memory_.ring = ring_after_;
  memory_.first_kept = end() - ring_after_->columns();
}

void DenseLayerState::abandon() {
  if (stored_) memory_.planes.abandon();
}

}  // namespace godwit::cache
