#include "ops/attention_work.h"

#include <algorithm>

namespace godwit::ops {
namespace {

using kernels::AttentionArgs;

constexpr std::int64_t kPiecesPerThread = 4;  // at least: a piece holds no more of the work than its share of that
// A long context of a single query is cut by blocks where its heads are not pieces enough: each block is read by one
// thread, whole.
constexpr std::int64_t kBlocksToShare = 16;
constexpr std::int64_t kHeadsTogether = 8;      // at least, where a KV head is read by several pieces
constexpr std::int64_t kQueriesTogether = 16;   // at most
constexpr std::int64_t kRowsToDecodeFor = 128;  // query rows for which a block is decoded once
constexpr std::int64_t kTileRows = 4;           // query rows that share their loads
constexpr std::int64_t kLeastRows = kTileRows;  // of a piece
constexpr std::int64_t kLeastRowsDecoded = 32;

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t group_of(const RowAttention& row) { return row.args.heads / row.args.keys.heads; }

// Query rows times blocks.
std::int64_t work_of(const RowAttention& row) {
  return row.args.query_end * row.args.heads * std::max<std::int64_t>(row.end - row.begin, 1);
}

// Queries that share the blocks they read, for pieces of no more than `wanted` work where that is to be had.
std::int64_t queries_together(const RowAttention& row, std::int64_t wanted) {
  const std::int64_t group = group_of(row), blocks = std::max<std::int64_t>(row.end - row.begin, 1);
  const std::int64_t most = row.is_decoded ? std::max(kQueriesTogether, kRowsToDecodeFor / group) : kQueriesTogether;
  const std::int64_t least = row.is_decoded ? kLeastRowsDecoded : kLeastRows;
  std::int64_t together = std::min(most, row.args.query_end);
  // Not into pieces with a tile that is half full.
  const auto fills_tiles = [&](std::int64_t queries) { return queries * group % kTileRows == 0 || group == 1; };
  while (together * group * blocks > wanted && together / 2 * group >= least && fills_tiles(together / 2)) together /= 2;
  return together;
}

// Pieces of a KV head's group of query heads, so that all threads have some of the `others` pieces. Each piece reads
// (and decodes) the head's blocks for itself, which some heads make up for.
std::int64_t group_pieces(const NativeRuntime& runtime, std::int64_t group, std::int64_t others) {
  const std::int64_t wanted = divided_up(runtime.pool.threads(), others);
  return std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, group / kHeadsTogether));
}

bool is_cut_by_blocks(const NativeRuntime& runtime, const RowAttention& row, std::int64_t wanted) {
  const std::int64_t threads = runtime.pool.threads();
  // One KV head that has heads enough for all threads is shared out by those: no parts are kept.
  const bool is_wide = row.args.keys.heads == 1 && row.args.heads >= kHeadsTogether * threads;
  return row.may_keep_parts && row.args.query_end == 1 && threads > 1 && !is_wide && row.end - row.begin >= kBlocksToShare &&
         group_of(row) * (row.end - row.begin) > wanted;
}

void cut(NativeRuntime& runtime, RowAttention& row, std::int64_t wanted, std::int64_t rows) {
  AttentionArgs& args = row.args;
  if (is_cut_by_blocks(runtime, row, wanted)) {
    const std::int64_t blocks = row.end - row.begin;
    args.parts = runtime.scratch.take<float>(args.heads * blocks * kernels::part_elements(args.values.dim)).data();
    args.parts_first = row.begin;
    args.parts_blocks = blocks;
    row.blocks = std::clamp<std::int64_t>(wanted / args.heads, 1, blocks);
    row.pieces = divided_up(blocks, row.blocks);
    return;
  }
  row.queries = queries_together(row, wanted);
  const std::int64_t spans = divided_up(args.query_end, row.queries);
  row.splits = group_pieces(runtime, group_of(row), args.keys.heads * spans * rows);
  row.pieces = args.keys.heads * row.splits * spans;
}

// Pieces of a KV head come one after another: the next finds its blocks near.
AttentionArgs piece_of(const RowAttention& row, std::int64_t piece) {
  AttentionArgs part = row.args;
  if (row.blocks > 0) {
    part.block_begin = row.begin + piece * row.blocks;
    part.block_end = std::min(part.block_begin + row.blocks, row.end);
    return part;
  }
  const std::int64_t group = group_of(row), spans = divided_up(part.query_end, row.queries);
  const std::int64_t split = piece / spans % row.splits, first = piece / spans / row.splits * group;
  part.head_begin = first + group * split / row.splits;
  part.head_end = first + group * (split + 1) / row.splits;
  part.query_begin = piece % spans * row.queries;
  part.query_end = std::min(part.query_begin + row.queries, part.query_end);
  return part;
}

// Calls each(row, i) for items [from, to) of all rows' items one after another; count(row) says how many a row has.
template <class Count, class Each>
void walk(std::span<const RowAttention> rows, std::int64_t from, std::int64_t to, Count&& count, Each&& each) {
  std::int64_t first = 0;
  for (const RowAttention& row : rows) {
    const std::int64_t end = first + count(row);
    for (std::int64_t i = std::max(from, first); i < std::min(to, end); ++i) each(row, i - first);
    first = end;
  }
}

// Shared one by one, as far as the pool takes so many.
template <class Fn>
void share_singly(ThreadPool& pool, std::int64_t count, Fn&& fn) {
  const std::int64_t parts = std::min<std::int64_t>(count, ThreadPool::kMaxParts);
  if (count == 0) return;
  if (pool.threads() == 1 || parts == 1) return fn(std::int64_t{0}, count);
  pool.run(static_cast<int>(parts), [&](int part) { fn(count * part / parts, count * (part + 1) / parts); });
}

std::int64_t merges_of(const RowAttention& row) { return row.blocks > 0 ? row.args.heads : 0; }

// The parts of all blocks, for one query and head: two exponentials a part, which many heads of a long context make
// worth sharing.
void merge_parts(const NativeRuntime& runtime, const AttentionArgs& args, std::int64_t head) {
  runtime.kernels.attention_merge({.parts = args.parts,
                                   .out = args.out,
                                   .intervals = args.intervals,
                                   .parts_first = args.parts_first,
                                   .parts_blocks = args.parts_blocks,
                                   .heads = args.heads,
                                   .dim = args.values.dim,
                                   .query_begin = 0,
                                   .query_end = 1,
                                   .head_begin = head,
                                   .head_end = head + 1,
                                   .out_stride = args.out_stride,
                                   .sinks = args.sinks,
                                   .selected = args.selected});
}

}  // namespace

void attend_rows(NativeRuntime& runtime, std::span<RowAttention> rows) {
  std::int64_t work = 0, pieces = 0, merges = 0;
  for (const RowAttention& row : rows) work += work_of(row);
  const std::int64_t wanted = divided_up(work, kPiecesPerThread * runtime.pool.threads());
  for (RowAttention& row : rows) {
    cut(runtime, row, wanted, static_cast<std::int64_t>(rows.size()));
    pieces += row.pieces;
    merges += merges_of(row);
  }
  const std::span<const RowAttention> planned = rows;
  share_singly(runtime.pool, pieces, [&](std::int64_t from, std::int64_t to) {
    walk(planned, from, to, [](const RowAttention& row) { return row.pieces; },
         [&](const RowAttention& row, std::int64_t piece) { runtime.kernels.attention(piece_of(row, piece)); });
  });
  runtime.share(merges, [&](std::int64_t from, std::int64_t to) {
    walk(planned, from, to, merges_of,
         [&](const RowAttention& row, std::int64_t head) { merge_parts(runtime, row.args, head); });
  });
}

}  // namespace godwit::ops
