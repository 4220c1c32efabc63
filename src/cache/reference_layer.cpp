#include "cache/reference_layer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/mx_ops.h"

namespace godwit::cache {
namespace {

// Packed [tokens, heads, dim] <-> [1, heads, tokens, dim]; both are views.
mx::array to_heads(const mx::array& packed) { return mx::expand_dims(mx::swapaxes(packed, 0, 1), 0); }
mx::array to_packed(const mx::array& heads) { return mx::swapaxes(mx::squeeze(heads, 0), 0, 1); }

mx::Dtype stored_dtype(DenseType dense, mx::Dtype model) {
  switch (dense) {
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

// Token axis: [1, heads, tokens, fields].
Components joined(const Components& first, const Components& second) {
  Components out;
  for (std::size_t c = 0; c < first.size(); ++c) out.push_back(mx::concatenate({first[c], second[c]}, 2));
  return out;
}

Components reordered(const Components& plane, const mx::array& order) {
  Components out;
  for (const mx::array& x : plane) out.push_back(mx::take(x, order, 2));
  return out;
}

Components tokens_of(const Components& plane, int begin, int end) {
  if (begin == 0 && end == plane.at(0).shape(2)) return plane;
  Components out;
  for (const mx::array& x : plane) {
    mx::Shape start(4, 0), stop = x.shape();
    start[2] = begin;
    stop[2] = end;
    out.push_back(mx::slice(x, start, stop));
  }
  return out;
}

// The spec of query i alone.
AttendSpec one(AttendSpec spec, int i) {
  if (spec.selected) spec.selected = mx::slice(*spec.selected, {i, 0}, {i + 1, spec.selected->shape(1)});
  return spec;
}

// `keys_as_values`: the values are the first elements of a dense key.
Components leading(const Components& keys, int dim) {
  mx::Shape start(4, 0), stop = keys.at(0).shape();
  if (keys.size() > 1 || stop[3] == dim) return keys;
  stop[3] = dim;
  return {mx::slice(keys[0], start, stop)};
}

}  // namespace

void append_span(RingShadow& ring, const RowSpan& span) {
  if (span.kind != SpanKind::committed) return ring.append(span.tokens);
  for (int i = 0; i < span.tokens; ++i) ring.append(1);
}

ReferenceLayer::ReferenceLayer(const Row::Impl& row, LayerPlace place, const RowSpan& span, bool reads_only)
    : row_(row),
      group_(row.choices->groups[place.group]),
      group_index_(place.group),
      slot_(place.index),
      span_(span),
      position_(row.length),
      reads_only_(reads_only),
      codec_(row.encoded ? group_.codec : Codec{}),
      ring_(row.rings[place.group]) {
  if (ring_ && !reads_only) append_span(*ring_, span);
}

mx::array ReferenceLayer::attend(const mx::array& q, const mx::array& k, const mx::array& v,
                                 const AttendSpec& spec) {
  if (group_.need.content == Content::keys_as_values)
    store({k});
  else
    store({k, v});
  return attend_stored(q, spec, /*borrowed=*/false);
}

mx::array ReferenceLayer::attend(const mx::array& q, const AttendSpec& spec) {
  return attend_stored(q, spec, /*borrowed=*/true);
}

std::vector<mx::array> ReferenceLayer::extend(const std::vector<mx::array>& planes) {
  if (row_.encoded && group_.is_encodable())
    fail(ErrorCode::internal, "state", "planes are handed out dense only");
  store(planes);
  std::vector<mx::array> out;
  for (std::size_t p = 0; p < fresh_.size(); ++p)
    out.push_back(mx::astype(mx::squeeze(visible(p, span_.tokens, ring_).at(0), 0), planes[p].dtype()));
  return out;
}

void ReferenceLayer::store(const std::vector<mx::array>& planes) {
  GODWIT_CHECK(!reads_only_, "a layer stored in a Step that only reads");
  GODWIT_CHECK(fresh_.empty(), "a layer stored twice in one Step");
  const LayerNeed& need = group_.need;
  std::vector<int> dims = {need.key_dim, need.value_dim};
  if (need.content == Content::keys_as_values) dims.pop_back();
  if (need.index_dim > 0) dims.push_back(need.index_dim);
  GODWIT_CHECK(planes.size() == dims.size(), "{} planes, {} are stored", planes.size(), dims.size());
  std::vector<Components> fresh;
  for (std::size_t p = 0; p < planes.size(); ++p) {
    check_packed(planes[p], span_.tokens, need.kv_heads, dims[p], p == 0 ? "k" : "v");
    fresh.push_back(encoded(p, planes[p]));
  }
  fresh_ = std::move(fresh);
}

Components ReferenceLayer::encoded(std::size_t plane, const mx::array& packed) const {
  return encode(codec_, plane == 0 ? PlaneRole::keys : PlaneRole::values, to_heads(packed),
                stored_dtype(row_.choices->policy().dense, packed.dtype()));
}

mx::array ReferenceLayer::attend_stored(const mx::array& q, const AttendSpec& spec, bool borrowed) {
  GODWIT_CHECK(stored(), "a layer was read before this Step stored its span");
  GODWIT_CHECK(!reads_only_ || position_ > 0, "a read of a row that holds nothing");
  check_packed(q, span_.tokens, 0, group_.need.query_dim(), "q");
  if (!reads_only_ && span_.kind == SpanKind::committed && span_.tokens > 1) return attend_committed(q, spec, borrowed);
  if (!seen_) seen_ = keys_and_values(span_.tokens, ring_);
  const int columns = (*seen_)[0].at(0).shape(2);
  Visibility visibility = {.kind = span_.kind,
                           .queries = span_.tokens,
                           .context = columns - span_.tokens,
                           .window = window(),
                           .together = span_.together};
  if (reads_only_) visibility = {.kind = SpanKind::bidirectional, .queries = span_.tokens, .context = columns};
  return attend_to(q, *seen_, visibility, spec, borrowed);
}

// Each position over what a step of its own would have seen, a ring's column order included.
mx::array ReferenceLayer::attend_committed(const mx::array& q, const AttendSpec& spec, bool borrowed) const {
  std::optional<RingShadow> ring = row_.rings[group_index_];
  std::vector<mx::array> outputs;
  for (int i = 0; i < span_.tokens; ++i) {
    if (ring) ring->append(1);
    const std::vector<Components> seen = keys_and_values(i + 1, ring);
    const Visibility alone = {.kind = SpanKind::causal,
                              .queries = 1,
                              .context = seen[0].at(0).shape(2) - 1,
                              .window = window()};
    const mx::array query = mx::slice(q, {i, 0, 0}, {i + 1, q.shape(1), q.shape(2)});
    outputs.push_back(attend_to(mx::contiguous(query), seen, alone, one(spec, i), borrowed));
  }
  return mx::concatenate(outputs, 0);
}

std::vector<Components> ReferenceLayer::keys_and_values(int own, const std::optional<RingShadow>& ring) const {
  Components keys = visible(0, own, ring);
  Components values = group_.need.content == Content::keys_as_values ? leading(keys, group_.need.value_dim)
                                                                    : visible(1, own, ring);
  return {std::move(keys), std::move(values)};
}

mx::array ReferenceLayer::attend_block(const mx::array& q, const mx::array& k, const mx::array& v,
                                       const AttendSpec& spec) {
  GODWIT_CHECK(fresh_.empty(), "a block was attended after this Step stored its span");
  const int block = k.shape(0);
  check_packed(q, block, 0, group_.need.query_dim(), "q");
  check_packed(k, block, group_.need.kv_heads, group_.need.key_dim, "k");
  check_packed(v, block, group_.need.kv_heads, group_.need.value_dim, "v");
  const int count = window() > 0 ? std::min(window() - 1, position_) : position_;
  Components keys = encoded(0, k), values = encoded(1, v);
  if (count > 0) {
    keys = joined(stored_columns(0, count), keys);
    values = joined(stored_columns(1, count), values);
  }
  return attend_to(q, {std::move(keys), std::move(values)},
                   {.kind = SpanKind::bidirectional, .queries = block, .context = count, .window = window()}, spec,
                   /*borrowed=*/false);
}

mx::array ReferenceLayer::attend_to(const mx::array& q, const std::vector<Components>& seen, Visibility visibility,
                                    const AttendSpec& spec, bool borrowed) const {
  return to_packed(cache::attend({.codec = codec_,
                                  .from_config = row_.choices->policy().per_layer,
                                  .reads_only = borrowed,
                                  .q = to_heads(q),
                                  .keys = seen[0],
                                  .values = seen[1],
                                  .visibility = std::move(visibility),
                                  .spec = spec,
                                  .is_latent = group_.need.content == Content::latent}));
}

const SlotPlaces& ReferenceLayer::places() const {
  const std::optional<ReferenceLayout>& layout = group_.reference(row_.encoded);
  GODWIT_CHECK(layout.has_value(), "a row of {} tokens without a layout", position_);
  return layout->slots[slot_];
}

// The newest `count` stored positions, in position order.
Components ReferenceLayer::stored_columns(std::size_t plane, int count) const {
  if (bound_) return bound_->stored[plane];
  return read_plane(row_.tables[group_index_], places()[plane], position_ - count, position_);
}

Components ReferenceLayer::visible(std::size_t plane, int own, const std::optional<RingShadow>& ring) const {
  if (reads_only_) return stored_columns(plane, window() > 0 ? std::min(window(), position_) : position_);
  const int end = position_ + own, count = ring ? ring->columns() : end;
  Components columns = tokens_of(fresh_[plane], std::max(0, own - count), own);
  if (count > own) columns = joined(stored_columns(plane, count - own), columns);
  if (bound_) return bound_->order ? reordered(columns, *bound_->order) : columns;
  if (!ring || ring->temporal()) return columns;
  return reordered(columns, column_order(*ring));
}

// Among the columns that are there, in position order, the one at each place of the ring.
mx::array ReferenceLayer::column_order(const RingShadow& ring) {
  std::vector<int> order = ring.positions();
  const int oldest = ring.offset() - ring.columns();
  for (int& position : order) position -= oldest;
  return mx::array(order.data(), {static_cast<int>(order.size())});
}

void ReferenceLayer::pending(std::vector<mx::array>& into) const {
  for (const Components& plane : fresh_) into.insert(into.end(), plane.begin(), plane.end());
}

}  // namespace godwit::cache
