#include "cache/cross_layer.h"

#include <utility>

#include "base/error.h"
#include "base/mx_ops.h"
#include "cache/dense_attention.h"
#include "ops/kv_attention.h"

namespace godwit::cache {
namespace {

std::vector<CrossLayer::Part> parts_of(std::size_t index, std::span<Row::Impl* const> rows,
                                       std::span<const RowSpan> spans) {
  std::vector<CrossLayer::Part> parts;
  for (std::size_t r = 0; r < rows.size(); ++r) parts.push_back({&rows[r]->cross[index], spans[r].tokens});
  return parts;
}

// Packed [tokens, heads, dim] <-> [1, heads, tokens, dim]; both are views.
mx::array to_heads(const mx::array& packed) { return mx::expand_dims(mx::swapaxes(packed, 0, 1), 0); }
mx::array to_packed(const mx::array& heads) { return mx::swapaxes(mx::squeeze(heads, 0), 0, 1); }

mx::array floats(const mx::array& x) { return mx::contiguous(mx::astype(x, mx::float32)); }

}  // namespace

CrossLayer::CrossLayer(const LayerNeed& need, NumericMode mode, Native native, std::vector<Part> parts)
    : need_(need), mode_(mode), native_(std::move(native)), parts_(std::move(parts)) {
  for (const Part& part : parts_) tokens_ += part.tokens;
  GODWIT_CHECK(mode_ == NumericMode::native || parts_.size() == 1, "{} rows in a reference Step",
               parts_.size());
  if (mode_ == NumericMode::native) layout_ = native_layout(need_, Codec{}, DenseType::f32, 1);
}

CrossLayer::CrossLayer(const StoreChoices& choices, LayerPlace place, std::span<Row::Impl* const> rows,
                       std::span<const RowSpan> spans)
    : CrossLayer(choices.needs()[static_cast<std::size_t>(choices.cross[place.index])],
                 choices.signature.mode, {choices.pool, choices.runtime},
                 parts_of(place.index, rows, spans)) {}

ops::NativeRuntime& CrossLayer::runtime() const {
  GODWIT_CHECK(native_.runtime != nullptr, "this state store was made without a runtime to attend with");
  return *native_.runtime;
}

bool CrossLayer::stored() const {
  for (const Part& part : parts_)
    if (!memory(part)) return false;
  return true;
}

void CrossLayer::write(const mx::array& k, const mx::array& v) {
  GODWIT_CHECK(parts_.size() == 1, "cross keys and values are written row by row, this Step has {}",
               parts_.size());
  GODWIT_CHECK(!memory(parts_[0]), "a row's cross keys and values are written twice");
  GODWIT_CHECK(k.ndim() == 3 && k.shape(0) > 0, "cross keys without positions");
  check_packed(k, k.shape(0), need_.kv_heads, need_.key_dim, "k");
  check_packed(v, k.shape(0), need_.kv_heads, need_.value_dim, "v");
  fresh_ = mode_ == NumericMode::native ? written_native(k, v) : written(k, v);
}

CrossMemory CrossLayer::written(const mx::array& k, const mx::array& v) const {
  CrossPlanes planes;
  planes.positions = k.shape(0);
  planes.keys = to_heads(k);
  planes.values = to_heads(v);
  return std::make_shared<const CrossPlanes>(std::move(planes));
}

CrossMemory CrossLayer::written_native(const mx::array& k, const mx::array& v) const {
  const mx::array keys = floats(k), values = floats(v);
  mx::eval(keys, values);
  CrossPlanes planes;
  planes.positions = k.shape(0);
  for (int position = 0; position < planes.positions; position += kPositions) {
    planes.blocks.push_back(native_.pool->take(layout_.bytes));
    planes.pointers.push_back(planes.blocks.back()->data());
    planes.blocks.back()->fill = std::min(kPositions, planes.positions - position);
  }
  ops::KvLayer layer;
  layer.rows.push_back({.blocks = planes.pointers.data(),
                        .keys = layout_.slots[0].keys,
                        .values = layout_.slots[0].values,
                        .position = 0,
                        .tokens = planes.positions,
                        .ends = {}});
  ops::store_span(runtime(), layer,
                  {.q = nullptr,
                   .k = keys.data<float>(),
                   .v = values.data<float>(),
                   .out = nullptr,
                   .q_stride = 0,
                   .k_stride = need_.kv_heads * need_.key_dim,
                   .v_stride = need_.kv_heads * need_.value_dim,
                   .out_stride = 0,
                   .heads = need_.kv_heads});
  runtime().scratch.reset();
  return std::make_shared<const CrossPlanes>(std::move(planes));
}

mx::array CrossLayer::attend(const mx::array& q, const AttendSpec& spec) {
  GODWIT_CHECK(stored(), "cross attention over keys and values that were never written");
  if (spec.selected) fail(ErrorCode::unsupported, "state", "a selection of positions in cross attention");
  check_packed(q, tokens_, 0, need_.key_dim, "q");
  if (mode_ == NumericMode::native) return attend_native(q, spec);
  const CrossPlanes& planes = *memory(parts_[0]);
  const Visibility all = {.kind = SpanKind::bidirectional, .queries = tokens_, .context = planes.positions};
  return to_packed(dense_attention(to_heads(q), mx::astype(*planes.keys, q.dtype()),
                                   mx::astype(*planes.values, q.dtype()), all, spec));
}

mx::array CrossLayer::attend_native(const mx::array& q, const AttendSpec& spec) const {
  const mx::array queries = floats(q);
  mx::array out = mx::zeros({tokens_, q.shape(1), need_.value_dim}, mx::float32);
  std::optional<mx::array> sinks;
  if (spec.sinks) sinks = floats(*spec.sinks);
  mx::eval(queries, out);
  if (sinks) mx::eval(*sinks);
  ops::KvLayer layer;
  layer.reads_only = true;
  for (const Part& part : parts_) {
    const CrossPlanes& planes = *memory(part);
    layer.rows.push_back(
        {.blocks = planes.pointers.data(),
         .keys = layout_.slots[0].keys,
         .values = layout_.slots[0].values,
         .position = planes.positions,
         .tokens = part.tokens,
         .ends = std::vector<std::int64_t>(static_cast<std::size_t>(part.tokens), planes.positions)});
  }
  ops::attend_span(runtime(), layer,
                   {.q = queries.data<float>(),
                    .k = nullptr,
                    .v = nullptr,
                    .out = out.data<float>(),
                    .q_stride = q.shape(1) * need_.key_dim,
                    .k_stride = 0,
                    .v_stride = 0,
                    .out_stride = q.shape(1) * need_.value_dim,
                    .heads = q.shape(1),
                    .scale = spec.scale,
                    .soft_cap = spec.soft_cap,
                    .sinks = sinks ? sinks->data<float>() : nullptr});
  runtime().scratch.reset();
  return mx::astype(out, q.dtype());
}

void CrossLayer::pending(std::vector<mx::array>& into) const {
  if (fresh_ && fresh_->keys) into.insert(into.end(), {*fresh_->keys, *fresh_->values});
}

void CrossLayer::publish() noexcept {
  if (fresh_) *parts_[0].memory = std::move(fresh_);
  fresh_.reset();
}

}  // namespace godwit::cache
