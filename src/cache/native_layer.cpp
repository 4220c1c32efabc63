#include "cache/native_layer.h"

#include <algorithm>

#include "base/error.h"
#include "base/mx_ops.h"
#include "ops/kv_attention.h"

namespace godwit::cache {
namespace {

// A span that looks forward is seen whole, wherever the windows of its queries begin.
void look_forward(ops::KvRow& row, const RowSpan& span) {
  if (span.kind != SpanKind::bidirectional && span.together.empty()) return;
  for (int i = 0; i < span.tokens; ++i) {
    row.begins.push_back(row.position + i);
    row.ends.push_back(row.position + i + 1);
  }
  const auto see_each_other = [&](int begin, int end) {
    std::fill(row.begins.begin() + begin, row.begins.begin() + end, row.position + begin);
    std::fill(row.ends.begin() + begin, row.ends.begin() + end, row.position + end);
  };
  if (span.kind == SpanKind::bidirectional) return see_each_other(0, span.tokens);
  for (const Together& group : span.together) see_each_other(group.begin, group.end);
}

mx::array floats(const mx::array& x) {
  mx::array out = mx::contiguous(mx::astype(x, mx::float32));
  mx::eval(out);
  return out;
}

mx::array selection(const mx::array& selected, int tokens) {
  GODWIT_CHECK(selected.ndim() == 2 && selected.shape(0) == tokens && selected.dtype() == mx::int32,
               "the selection is not [{}, k] int32", tokens);
  // An empty list names nothing, which no list at all would not say.
  mx::array out = selected.shape(1) > 0 ? mx::contiguous(selected) : mx::full({tokens, 1}, -1, mx::int32);
  mx::eval(out);
  return out;
}

// The arrays of one attend(), evaluated, and the span that names them.
struct Operands {
  mx::array q, out;
  std::optional<mx::array> k, v, sinks, selected;
  ops::KvSpan span;
};

std::int64_t token_stride(const std::optional<mx::array>& x) { return x ? x->shape(1) * x->shape(2) : 0; }

// What a step that stores nothing asks.
Operands queries_of(const LayerNeed& need, int tokens, const mx::array& q, const AttendSpec& spec) {
  check_packed(q, tokens, 0, need.query_dim(), "q");
  Operands o{.q = floats(q),
             .out = mx::zeros({q.shape(0), q.shape(1), need.output_dim()}, mx::float32),
             .k = {},
             .v = {},
             .sinks = {},
             .selected = {},
             .span = {}};
  mx::eval(o.out);
  if (spec.sinks) o.sinks = floats(*spec.sinks);
  if (spec.selected) o.selected = selection(*spec.selected, tokens);
  o.span = {.q = o.q.data<float>(),
            .k = nullptr,
            .v = nullptr,
            .out = o.out.data<float>(),
            .q_stride = q.shape(1) * q.shape(2),
            .k_stride = 0,
            .v_stride = 0,
            .out_stride = q.shape(1) * need.output_dim(),
            .heads = q.shape(1),
            .scale = spec.scale,
            .soft_cap = spec.soft_cap,
            .sinks = o.sinks ? o.sinks->data<float>() : nullptr,
            .selected = o.selected ? o.selected->data<std::int32_t>() : nullptr,
            .selected_count = o.selected ? o.selected->shape(1) : 0};
  return o;
}

// Keys and values as the planes hold them: a latent and its rotary key are one.
Operands operands(const LayerNeed& need, int tokens, const mx::array& q, const mx::array& k, const mx::array& v,
                  const AttendSpec& spec) {
  check_packed(k, tokens, need.kv_heads, need.key_dim, "k");
  if (need.content != Content::keys_as_values) check_packed(v, tokens, need.kv_heads, need.value_dim, "v");
  Operands o = queries_of(need, tokens, q, spec);
  o.k = floats(need.content == Content::latent ? mx::concatenate({k, v}, 2) : k);
  if (need.content == Content::keys_values) o.v = floats(v);
  o.span.k = o.k->data<float>();
  o.span.v = o.v ? o.v->data<float>() : nullptr;
  o.span.k_stride = token_stride(o.k);
  o.span.v_stride = token_stride(o.v);
  return o;
}

ops::NativeRuntime& need_runtime(const StoreChoices& choices) {
  GODWIT_CHECK(choices.runtime != nullptr, "this state store was made without a runtime to attend with");
  return *choices.runtime;
}

}  // namespace

NativeLayer::NativeLayer(const StoreChoices& choices, int index, ops::KvLayer& kv)
    : choices_(choices),
      index_(index),
      group_(choices.groups[choices.places[static_cast<std::size_t>(index)].group]),
      need_(group_.need),
      kv_(kv) {}

void NativeLayer::begin(std::span<Row::Impl* const> rows, std::span<const RowSpan> spans, bool reads_only) {
  const LayerPlace& place = choices_.places[static_cast<std::size_t>(index_)];
  kv_.window = group_.window();
  kv_.reads_only = reads_only;
  kv_.stored = false;
  kv_.rows.clear();
  tokens_ = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Row::Impl& row = *rows[r];
    const NativePlanes& planes = group_.native(row.encoded).slots[place.index];
    kv_.rows.push_back({.blocks = row.tables[place.group].pointers(),
                        .keys = planes.keys,
                        .values = planes.values,
                        .position = row.length,
                        .tokens = spans[r].tokens,
                        .ends = {}});
    if (!reads_only) look_forward(kv_.rows.back(), spans[r]);
    tokens_ += spans[r].tokens;
  }
}

mx::array NativeLayer::attend(const mx::array& q, const mx::array& k, const mx::array& v, const AttendSpec& spec) {
  GODWIT_CHECK(!kv_.reads_only && !kv_.stored, "a layer stored twice in one Step, or in one that only reads");
  Operands o = operands(need_, tokens_, q, k, v, spec);
  ops::NativeRuntime& runtime = need_runtime(choices_);
  ops::store_span(runtime, kv_, o.span);
  kv_.stored = true;
  ops::attend_span(runtime, kv_, o.span);
  runtime.scratch.reset();
  return mx::astype(o.out, q.dtype());
}

mx::array NativeLayer::attend(const mx::array& q, const AttendSpec& spec) {
  GODWIT_CHECK(stored(), "a layer was read before this Step stored its span");
  Operands o = queries_of(need_, tokens_, q, spec);
  ops::attend_span(need_runtime(choices_), kv_, o.span);
  choices_.runtime->scratch.reset();
  return mx::astype(o.out, q.dtype());
}

mx::array NativeLayer::attend_block(const mx::array& q, const mx::array& k, const mx::array& v,
                                    const AttendSpec& spec) {
  GODWIT_CHECK(!kv_.stored, "a block was attended after this Step stored its span");
  Operands o = operands(need_, tokens_, q, k, v, spec);
  ops::attend_block(need_runtime(choices_), kv_, o.span);
  choices_.runtime->scratch.reset();
  return mx::astype(o.out, q.dtype());
}

}  // namespace godwit::cache
