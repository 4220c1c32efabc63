#include "ops/kv_attention.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "kernels/kv_codec.h"
#include "ops/attention_work.h"
#include "ops/kv_visibility.h"

namespace godwit::ops {
namespace {

using kernels::AttentionArgs;
using kernels::Interval;
using kernels::kBlockPositions;
using kernels::KvForm;
using kernels::KvPlane;

bool is_rotated(const KvRow& row) {
  return row.values.form == KvForm::turbo_values && !kernels::keys_as_values(row.keys, row.values);
}

bool is_decoded(const KvRow& row) {
  return row.keys.form > KvForm::bf16 || row.keys.form != row.values.form ||
         kernels::keys_as_values(row.keys, row.values);
}

AttentionArgs row_args(const KvRow& row, const KvSpan& span, std::int64_t first, const Interval* intervals) {
  GODWIT_CHECK(row.keys.heads == row.values.heads && span.heads % row.keys.heads == 0,
               "{} heads over {} keys and {} values", span.heads, row.keys.heads, row.values.heads);
  return {.q = span.q + first * span.q_stride,
          .out = span.out + first * span.out_stride,
          .intervals = intervals,
          .blocks = row.blocks,
          .keys = row.keys,
          .values = row.values,
          .heads = span.heads,
          .query_begin = 0,
          .query_end = row.tokens,
          .head_begin = 0,
          .head_end = span.heads,
          .q_stride = span.q_stride,
          .out_stride = span.out_stride,
          .scale = span.scale,
          .soft_cap = span.soft_cap,
          .sinks = span.sinks};
}

// Calls each(row, begin, end, first) over the parts of tokens [from, to) of a step that lie in one row: [begin, end)
// counts from that row's first token, which is token `first` of the step.
template <class Each>
void walk_rows(const KvLayer& layer, std::int64_t from, std::int64_t to, Each&& each) {
  std::int64_t first = 0;
  for (const KvRow& row : layer.rows) {
    const std::int64_t begin = std::max<std::int64_t>(from - first, 0), end = std::min(to - first, row.tokens);
    if (begin < end) each(row, begin, end, first);
    first += row.tokens;
  }
}

std::int64_t tokens_of(const KvLayer& layer) {
  std::int64_t tokens = 0;
  for (const KvRow& row : layer.rows) tokens += row.tokens;
  return tokens;
}

// Turbo values were attended in their rotated domain.
void restore_rows(NativeRuntime& runtime, const KvLayer& layer, const KvSpan& span) {
  if (std::ranges::none_of(layer.rows, is_rotated)) return;
  runtime.share(tokens_of(layer), [&](std::int64_t from, std::int64_t to) {
    walk_rows(layer, from, to, [&](const KvRow& row, std::int64_t begin, std::int64_t end, std::int64_t first) {
      if (!is_rotated(row)) return;
      for (std::int64_t i = first + begin; i < first + end; ++i)
        runtime.kernels.restore_values(
            {span.out + i * span.out_stride, span.heads, row.values.dim, row.values.dim});
    });
  });
}

std::span<RowAttention> row_work(NativeRuntime& runtime, const KvLayer& layer) {
  return runtime.scratch.take<RowAttention>(static_cast<std::int64_t>(layer.rows.size()));
}

// A row's own tokens as dense f32 blocks; values in the domain of the row's.
struct SpanBlocks {
  KvPlane keys, values;
  void** blocks;
};

const float* rotated_values(NativeRuntime& runtime, const KvRow& row, const float* v, std::int64_t stride) {
  const std::int64_t token = row.values.heads * row.values.dim;
  float* const out = runtime.scratch.take<float>(row.tokens * token).data();
  runtime.share(row.tokens, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) {
      std::copy_n(v + i * stride, token, out + i * token);
      for (std::int64_t head = 0; head < row.values.heads; ++head)
        kernels::rotate_values(out + i * token + head * row.values.dim, row.values.dim);
    }
  });
  return out;
}

SpanBlocks span_blocks(NativeRuntime& runtime, const KvRow& row, const KvSpan& span, std::int64_t first) {
  SpanBlocks out{.keys = {.heads = row.keys.heads, .dim = row.keys.dim},
                 .values = {.heads = row.values.heads, .dim = row.values.dim},
                 .blocks = nullptr};
  std::int64_t bytes = kernels::plane_bytes(out.keys);
  if (!kernels::keys_as_values(row.keys, row.values)) {
    out.values.offset = bytes;
    bytes += kernels::plane_bytes(out.values);
  }
  const std::int64_t count = block_count(row.tokens);
  out.blocks = runtime.scratch.take<void*>(count).data();
  std::byte* const memory = runtime.scratch.take<std::byte>(count * bytes).data();
  for (std::int64_t b = 0; b < count; ++b) out.blocks[b] = memory + b * bytes;

  kernels::StoreKvArgs store{.k = span.k + first * span.k_stride,
                             .v = span.v == nullptr ? nullptr : span.v + first * span.v_stride,
                             .blocks = out.blocks,
                             .keys = out.keys,
                             .values = out.values,
                             .position = 0,
                             .tokens = row.tokens,
                             .k_stride = span.k_stride,
                             .v_stride = span.v_stride};
  if (is_rotated(row)) {
    store.v = rotated_values(runtime, row, store.v, store.v_stride);
    store.v_stride = row.values.heads * row.values.dim;
  }
  kernels::store_kv(store);
  return out;
}

// The stored context of a row, of which the walk leaves its state, and the row's own span, which takes it up.
void plan_block_of_row(NativeRuntime& runtime, const KvLayer& layer, const KvRow& row, const KvSpan& span,
                       std::int64_t first, RowAttention& stored_part, RowAttention& own_part) {
  const SpanBlocks own = span_blocks(runtime, row, span, first);
  Interval* const stored = runtime.scratch.take<Interval>(row.tokens).data();
  Interval* const whole = runtime.scratch.take<Interval>(row.tokens).data();
  for (std::int64_t i = 0; i < row.tokens; ++i) {
    const std::int64_t end = row.position + i + 1;
    const std::int64_t lo = layer.window > 0 ? std::max<std::int64_t>(0, end - layer.window) : 0;
    stored[i] = {std::min(lo, row.position), row.position};
    whole[i] = {0, row.tokens};
  }
  AttentionArgs args = row_args(row, span, first, stored);
  args.selected = selection(runtime, span, {first, row.tokens}, 0, block_count(row.position));
  args.leave =
      runtime.scratch.take<float>(row.tokens * span.heads * kernels::part_elements(row.values.dim)).data();
  std::construct_at(&stored_part,
                    RowAttention{.args = args,
                                 .begin = stored[0].lo / kBlockPositions,
                                 .end = block_count(row.position),
                                 .is_decoded = is_decoded(row),
                                 .may_keep_parts = false});
  args.resume = args.leave;
  args.leave = nullptr;
  args.intervals = whole;
  args.selected = selection(runtime, span, {first, row.tokens}, row.position, block_count(row.tokens));
  args.blocks = own.blocks;
  args.keys = own.keys;
  args.values = own.values;
  std::construct_at(&own_part, RowAttention{.args = args,
                                            .begin = 0,
                                            .end = block_count(row.tokens),
                                            .is_decoded = kernels::keys_as_values(own.keys, own.values),
                                            .may_keep_parts = false});
}

}  // namespace

void store_tokens(const KvLayer& layer, const KvSpan& span, std::int64_t from, std::int64_t to) {
  walk_rows(layer, from, to, [&](const KvRow& row, std::int64_t begin, std::int64_t end, std::int64_t first) {
    const std::int64_t token = first + begin;
    kernels::store_kv({.k = span.k + token * span.k_stride,
                       .v = span.v == nullptr ? nullptr : span.v + token * span.v_stride,
                       .blocks = row.blocks,
                       .keys = row.keys,
                       .values = row.values,
                       .position = row.position + begin,
                       .tokens = end - begin,
                       .k_stride = span.k_stride,
                       .v_stride = span.v_stride});
  });
}

void store_span(NativeRuntime& runtime, const KvLayer& layer, const KvSpan& span) {
  runtime.share(tokens_of(layer),
                [&](std::int64_t from, std::int64_t to) { store_tokens(layer, span, from, to); });
}

void attend_span(NativeRuntime& runtime, const KvLayer& layer, const KvSpan& span) {
  const std::span<RowAttention> work = row_work(runtime, layer);
  std::int64_t first = 0;
  for (std::size_t r = 0; r < layer.rows.size(); ++r) {
    const KvRow& row = layer.rows[r];
    GODWIT_CHECK(row.ends.empty() || static_cast<std::int64_t>(row.ends.size()) == row.tokens,
                 "{} ends for {} queries", row.ends.size(), row.tokens);
    Interval* const intervals = runtime.scratch.take<Interval>(row.tokens).data();
    std::int64_t end = 0;
    for (std::int64_t i = 0; i < row.tokens; ++i) {
      intervals[i] = seen_by(layer, row, i);
      end = std::max(end, intervals[i].hi);
    }
    AttentionArgs args = row_args(row, span, first, intervals);
    args.selected = selection(runtime, span, {first, row.tokens}, 0, block_count(end));
    std::construct_at(&work[r], RowAttention{.args = args,
                                             .begin = intervals[0].lo / kBlockPositions,
                                             .end = block_count(end),
                                             .is_decoded = is_decoded(row)});
    first += row.tokens;
  }
  attend_rows(runtime, work);
  restore_rows(runtime, layer, span);
}

void attend_block(NativeRuntime& runtime, const KvLayer& layer, const KvSpan& span) {
  const std::span<RowAttention> stored = row_work(runtime, layer), own = row_work(runtime, layer);
  std::int64_t first = 0;
  for (std::size_t r = 0; r < layer.rows.size(); ++r) {
    plan_block_of_row(runtime, layer, layer.rows[r], span, first, stored[r], own[r]);
    first += layer.rows[r].tokens;
  }
  attend_rows(runtime, stored);
  attend_rows(runtime, own);
  restore_rows(runtime, layer, span);
}

}  // namespace godwit::ops
