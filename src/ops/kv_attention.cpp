#include "ops/kv_attention.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/kv_codec.h"
#include "ops/kv_visibility.h"

namespace godwit::ops {
namespace {

using kernels::AttentionArgs;
using kernels::Interval;
using kernels::kBlockPositions;
using kernels::KvForm;
using kernels::KvPlane;

// A long context of a single query is shared out by blocks instead of heads: each is read by one thread,
// whole.
constexpr std::int64_t kBlocksToShare = 16;
constexpr std::int64_t kQueriesTogether = 16;
constexpr std::int64_t kHeadsTogether = 8;  // at least, where a KV head is read by several threads
constexpr std::int64_t kRowsToDecodeFor = 128;  // query rows for which a block is decoded once

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

// Pieces of a KV head's group of query heads, so that all threads have some. Each piece reads (and decodes)
// the head's blocks for itself, which some heads make up for.
std::int64_t group_pieces(const NativeRuntime& runtime, std::int64_t group, std::int64_t others) {
  const std::int64_t wanted = (runtime.pool.threads() + others - 1) / others;
  return std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, group / kHeadsTogether));
}

// Some heads of a KV head's group and some queries a piece.
void attend_pieces(NativeRuntime& runtime, const AttentionArgs& args, std::int64_t together) {
  const std::int64_t group = args.heads / args.keys.heads;
  const std::int64_t spans = (args.query_end + together - 1) / together;
  const std::int64_t splits = group_pieces(runtime, group, args.keys.heads * spans);
  runtime.share(args.keys.heads * splits * spans, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t piece = from; piece < to; ++piece) {
      AttentionArgs part = args;
      const std::int64_t split = piece / spans % splits, first = piece / spans / splits * group;
      part.head_begin = first + group * split / splits;
      part.head_end = first + group * (split + 1) / splits;
      part.query_begin = piece % spans * together;
      part.query_end = std::min(part.query_begin + together, args.query_end);
      runtime.kernels.attention(part);
    }
  });
}

// The parts of all blocks, for one query: two exponentials a part, which many heads of a long context make worth sharing.
void merge_parts(NativeRuntime& runtime, const AttentionArgs& args) {
  runtime.share(args.heads, [&](std::int64_t from, std::int64_t to) {
    runtime.kernels.attention_merge({.parts = args.parts,
                                     .out = args.out,
                                     .intervals = args.intervals,
                                     .parts_first = args.parts_first,
                                     .parts_blocks = args.parts_blocks,
                                     .heads = args.heads,
                                     .dim = args.values.dim,
                                     .query_begin = 0,
                                     .query_end = 1,
                                     .head_begin = from,
                                     .head_end = to,
                                     .out_stride = args.out_stride,
                                     .sinks = args.sinks,
                                     .selected = args.selected});
  });
}

void attend_by_blocks(NativeRuntime& runtime, AttentionArgs args, std::int64_t begin, std::int64_t end) {
  const std::int64_t size = args.heads * (end - begin) * kernels::part_elements(args.values.dim);
  args.parts = runtime.scratch.take<float>(size).data();
  args.parts_first = begin;
  args.parts_blocks = end - begin;
  runtime.share(end - begin, [&](std::int64_t from, std::int64_t to) {
    AttentionArgs part = args;
    part.block_begin = begin + from;
    part.block_end = begin + to;
    runtime.kernels.attention(part);
  });
  merge_parts(runtime, args);
}

std::int64_t queries_together(const KvRow& row, const KvSpan& span) {
  if (!is_decoded(row)) return kQueriesTogether;
  return std::max(kQueriesTogether, kRowsToDecodeFor / (span.heads / row.keys.heads));
}

void attend_stored(NativeRuntime& runtime, const KvRow& row, const KvSpan& span, const AttentionArgs& args) {
  const Interval seen = args.intervals[0];
  const std::int64_t begin = seen.lo / kBlockPositions, end = block_count(seen.hi);
  // One KV head that has heads enough for all threads is shared out by those: no parts are kept.
  const bool is_wide = args.keys.heads == 1 && args.heads >= kHeadsTogether * runtime.pool.threads();
  if (row.tokens == 1 && end - begin >= kBlocksToShare && runtime.pool.threads() > 1 && !is_wide)
    return attend_by_blocks(runtime, args, begin, end);
  attend_pieces(runtime, args, queries_together(row, span));
}

// Turbo values were attended in their rotated domain.
void restore_row(NativeRuntime& runtime, const KvRow& row, const AttentionArgs& args) {
  if (!is_rotated(row)) return;
  runtime.share(row.tokens, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i)
      runtime.kernels.restore_values(
          {args.out + i * args.out_stride, args.heads, args.values.dim, args.values.dim});
  });
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

void attend_block_of_row(NativeRuntime& runtime, const KvLayer& layer, const KvRow& row, const KvSpan& span,
                         std::int64_t first) {
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
  const std::int64_t part = kernels::part_elements(row.values.dim);
  args.leave = runtime.scratch.take<float>(row.tokens * span.heads * part).data();
  attend_pieces(runtime, args, queries_together(row, span));
  args.resume = args.leave;
  args.leave = nullptr;
  args.intervals = whole;
  args.selected = selection(runtime, span, {first, row.tokens}, row.position, block_count(row.tokens));
  args.blocks = own.blocks;
  args.keys = own.keys;
  args.values = own.values;
  attend_pieces(runtime, args, queries_together(row, span));
  restore_row(runtime, row, args);
}

}  // namespace

void store_span(NativeRuntime& runtime, const KvLayer& layer, const KvSpan& span) {
  std::int64_t first = 0;
  for (const KvRow& row : layer.rows) {
    runtime.share(row.tokens, [&](std::int64_t begin, std::int64_t end) {
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
    first += row.tokens;
  }
}

void attend_span(NativeRuntime& runtime, const KvLayer& layer, const KvSpan& span) {
  std::int64_t first = 0;
  for (const KvRow& row : layer.rows) {
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
    attend_stored(runtime, row, span, args);
    restore_row(runtime, row, args);
    first += row.tokens;
  }
}

void attend_block(NativeRuntime& runtime, const KvLayer& layer, const KvSpan& span) {
  std::int64_t first = 0;
  for (const KvRow& row : layer.rows) {
    attend_block_of_row(runtime, layer, row, span, first);
    first += row.tokens;
  }
}

}  // namespace godwit::ops
