// Attention of packed queries over one row's keys and values, which lie in blocks of 64 positions.
//
// A key block is [kv_heads, head_dim, 64], positions innermost, so that 64 scores are sums over head_dim
// without a reduction across lanes; a value block is [kv_heads, 64, head_dim]. Both are whole allocations;
// positions that no query sees may hold anything.
//
// Definition, for one query and head over the visible positions [lo, hi):
//   score(p) = scale * (sum over d, ascending, of q[d] k[p][d], each step one fma)
//   each block on its own: m = max score, e(p) = exp(score(p) - m), l = sum of e, o[d] = sum over p ascending
//   of e(p) v[p][d] by fma; then blocks are merged into (m, l, o) in ascending order, and the result is o /
//   l.
// A block's part depends on the query, the block and the interval only: the answer does not depend on how
// many queries are asked together, on the chunks of the prefill, or on the thread count. An empty interval
// gives zeros.
#pragma once

#include <cstdint>

namespace godwit::kernels {

inline constexpr std::int64_t kBlockPositions = 64;
inline constexpr std::int64_t kMaxHeadDim = 512;

enum class KvType { f32, f16, bf16 };

struct Interval {
  std::int64_t lo, hi;  // positions [lo, hi) are visible
};

struct AttentionArgs {
  const float* q;             // [queries, heads, head_dim], queries lie q_stride apart
  float* out;                 // [queries, heads, head_dim], queries lie out_stride apart
  const Interval* intervals;  // [queries]
  const void* const*
      key_blocks;  // entry b holds positions [64b, 64b + 64); those outside every interval are not read
  const void* const* value_blocks;  // likewise
  KvType type;
  std::int64_t heads, kv_heads,
      head_dim;  // kv_heads divides heads; head_dim a multiple of 16, at most kMaxHeadDim
  std::int64_t query_begin, query_end;  // the part of the work that this call does
  std::int64_t head_begin, head_end;
  std::int64_t q_stride, out_stride;  // in elements
  float scale;

  // For a long context the blocks can be shared out among threads instead: with `parts`, only blocks
  // [block_begin, block_end) are visited, `out` is left alone, and what each block gives is written for
  // attention_merge.
  float* parts =
      nullptr;  // [queries, heads, parts_blocks, part_elements(head_dim)]; entry b - parts_first is block b
  std::int64_t parts_first = 0, parts_blocks = 0;
  std::int64_t block_begin = 0, block_end = 0;
};

// o, then m and l, then room up to whole vectors.
constexpr std::int64_t part_elements(std::int64_t head_dim) { return head_dim + 16; }

// Merges the parts of all blocks that a query sees, ascending, with the arithmetic of the undivided call:
// same bits.
struct AttentionMergeArgs {
  const float* parts;  // as above, all blocks of all intervals present
  float* out;
  const Interval* intervals;
  std::int64_t parts_first, parts_blocks;
  std::int64_t heads, head_dim;
  std::int64_t query_begin, query_end;
  std::int64_t head_begin, head_end;
  std::int64_t out_stride;
};

// Writes the keys and values of consecutive positions into their blocks, converted to `type` by rounding to
// nearest even. One body for all levels: it moves bytes.
struct StoreKvArgs {
  const float* k;  // [tokens, kv_heads, head_dim], tokens lie k_stride apart
  const float* v;  // likewise, v_stride
  void* const* key_blocks;
  void* const* value_blocks;
  KvType type;
  std::int64_t position;  // of the first token
  std::int64_t tokens, kv_heads, head_dim;
  std::int64_t k_stride, v_stride;  // in elements
};
void store_kv(const StoreKvArgs& args);

constexpr std::int64_t kv_element_bytes(KvType type) { return type == KvType::f32 ? 4 : 2; }

}  // namespace godwit::kernels
