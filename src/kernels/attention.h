// Attention of packed queries over one row's keys and values, which lie in blocks of 64 positions.
//
// kv_plane.h says how a block holds them. Dense keys have positions innermost, so that 64 scores are sums
// over the head's elements without a reduction across lanes. Positions that no query sees may hold anything.
//
// Definition, for one query and head over the visible positions [lo, hi), with k[p] and v[p] as f32 values of
// what is stored: a dense element widened, an encoded one as kv_codec.h decodes it (turbo values to the
// rotated domain: `out` lies there too, until restore_values turns it back):
//   score(p) = scale * (sum over d, ascending, of q[d] k[p][d], each step one fma); with a soft cap,
//   cap * tanh(score / cap)
//   each block on its own: m = max score, e(p) = exp(score(p) - m), l = sum of e, o[d] = sum over p ascending
//   of e(p) v[p][d] by fma; then blocks are merged into (m, l, o) in ascending order. A sink counts as a last
//   block with m = sink, l = 1, o = 0. The result is o / l.
// Where a query selects positions, the visible ones are those of [lo, hi) that it names, and a block in which
// it names none does not count.
// A block's part depends on the query, the block and what it sees of it only: the answer does not depend on
// how many queries are asked together, on the chunks of the prefill, or on the thread count. A query that
// sees nothing gives zeros.
#pragma once

#include <cstdint>

#include "kernels/kv_plane.h"

namespace godwit::kernels {

inline constexpr std::int64_t kMaxHeadDim = 576;

struct Interval {
  std::int64_t lo, hi;  // positions [lo, hi) are visible
};

// Positions that each query names: bit s of word b is position 64 b + s. Null: all of them.
struct Selection {
  const std::uint64_t* words = nullptr;  // [queries, stride]; one for every block that an interval touches
  std::int64_t stride = 0;
};

struct AttentionArgs {
  const float* q;             // [queries, heads, keys.dim], queries lie q_stride apart
  float* out;                 // [queries, heads, values.dim], queries lie out_stride apart
  const Interval* intervals;  // [queries]
  // Entry b is the block of positions [64b, 64b + 64); those outside every interval are not read.
  const void* const* blocks;
  // Equal heads, which divide `heads`; dims are multiples of 16, at most kMaxHeadDim. With keys_as_values the
  // values are the first values.dim elements of the keys.
  KvPlane keys, values;
  std::int64_t heads;
  std::int64_t query_begin, query_end;  // the part of the work that this call does
  std::int64_t head_begin, head_end;
  std::int64_t q_stride, out_stride;  // in elements
  float scale;
  float soft_cap = 0.0f;         // 0: none
  const float* sinks = nullptr;  // [heads]: scores that only the denominator sees, neither scaled nor capped
  Selection selected = {};

  // For a long context the blocks can be shared out among threads instead: with `parts`, only blocks
  // [block_begin, block_end) are visited, `out` is left alone, and what each block gives is written for
  // attention_merge, which then also adds the sinks.
  float* parts = nullptr;  // [queries, heads, parts_blocks, part_elements]; entry b - parts_first is block b
  std::int64_t parts_first = 0, parts_blocks = 0;
  std::int64_t block_begin = 0, block_end = 0;

  // For a context of two kinds of blocks: the walk over the first leaves its (o, m, l) in `leave`, without
  // sinks and without writing `out`; the walk over the second takes it up from `resume`. Same bits as one
  // walk over both. [queries, heads, part_elements(values.dim)], at most one of them; not together with
  // `parts`.
  float* leave = nullptr;
  const float* resume = nullptr;
};

// o, then m and l, then room up to whole vectors.
constexpr std::int64_t part_elements(std::int64_t dim) { return dim + 16; }

// Merges the parts of all blocks that a query sees, ascending, with the arithmetic of the undivided call:
// same bits.
struct AttentionMergeArgs {
  const float* parts;  // as above, all blocks of all intervals present
  float* out;
  const Interval* intervals;
  std::int64_t parts_first, parts_blocks;
  std::int64_t heads, dim;  // of the values
  std::int64_t query_begin, query_end;
  std::int64_t head_begin, head_end;
  std::int64_t out_stride;
  const float* sinks = nullptr;
  Selection selected = {};
};

}  // namespace godwit::kernels
