// The body of attention.h. A band of query rows (query, head) walks the blocks together, so each block is
// read from memory once for all of them; inside a block, tiles of kTileRows rows of one KV head share the
// loads.
#pragma once

#include "kernels/attention.h"
#include "kernels/attention_merge-inl.h"
#include "kernels/exp-inl.h"
#include "kernels/level.h"

namespace godwit::kernels {
namespace {

template <class V>
struct ReadF32 {
  using Element = float;
  static V load(const float* p) { return V::load(p); }
};
template <class V>
struct ReadF16 {
  using Element = std::uint16_t;
  static V load(const std::uint16_t* p) { return V::load_f16(p); }
};
template <class V>
struct ReadBf16 {
  using Element = std::uint16_t;
  static V load(const std::uint16_t* p) { return V::load_bf16(p); }
};

inline constexpr int kBandRows = 16;

// One query row of the band: its inputs, its running state, and its share of the current block.
struct QueryRow {
  const float* q;
  float* out;
  float* parts;  // of its block parts_first; null when blocks are merged at once
  std::int64_t kv_head;
  Interval interval;
  SoftmaxState state;
  std::int64_t first, last;           // visible slots of the current block
  float weights[kBlockPositions];     // scores, then e, of the current block
  float block_weighted[kMaxHeadDim];  // sum of e * v within the current block
};

// A plane (one KV head of one block) that will be read next: each step of a loop over the current plane asks
// for as many bytes of it as it reads itself, so that the next loop finds it near.
struct NextPlane {
  const void* bytes;  // null: nothing to fetch

  [[gnu::always_inline]] void fetch(std::int64_t at, std::int64_t count) const {
    if (bytes == nullptr) return;
    for (std::int64_t line = 0; line < count; line += 64)
      __builtin_prefetch(static_cast<const char*>(bytes) + at + line);
  }
};

// Scores of all 64 slots for `kRows` rows; slots past an interval get meaningless values, masked later.
template <class V, class Read, int kRows>
void score_tile(QueryRow* rows, const typename Read::Element* keys, std::int64_t head_dim, float scale,
                NextPlane next) {
  constexpr std::int64_t kLineBytes = kBlockPositions * sizeof(typename Read::Element);
  constexpr int kWide = V::kTileVectors;
  for (std::int64_t slot = 0; slot < kBlockPositions; slot += 16 * kWide) {
    V sums[kRows][kWide];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; r++)
#pragma GCC unroll 4
      for (int w = 0; w < kWide; w++) sums[r][w] = V::zero();
    for (std::int64_t d = 0; d < head_dim; d++) {
      if (slot == 0) next.fetch(d * kLineBytes, kLineBytes);
      V key[kWide];
#pragma GCC unroll 4
      for (int w = 0; w < kWide; w++) key[w] = Read::load(keys + d * kBlockPositions + slot + 16 * w);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; r++) {
        const V q = V::set1(rows[r].q[d]);
#pragma GCC unroll 4
        for (int w = 0; w < kWide; w++) sums[r][w] = V::fma(q, key[w], sums[r][w]);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; r++)
#pragma GCC unroll 4
      for (int w = 0; w < kWide; w++) (sums[r][w] * V::set1(scale)).store(rows[r].weights + slot + 16 * w);
  }
}

// Turns the row's scores into e = exp(score - m) of this block; returns m, leaves the sum in *total.
template <class V>
float soften(QueryRow& row, float* total) {
  const V lowest = V::set1(-__builtin_huge_valf());
  const V first = V::set1(static_cast<float>(row.first)), last = V::set1(static_cast<float>(row.last));
  V scores[4], largest = lowest;
  for (int w = 0; w < 4; w++) {
    const V slot = V::iota() + V::set1(static_cast<float>(16 * w));
    const V score = V::where_less(slot, last, V::load(row.weights + 16 * w), lowest);
    scores[w] = V::where_less(slot, first, lowest, score);
    largest = V::max(largest, scores[w]);
  }
  const float m = largest.maximum();
  V sum = V::zero();
  for (int w = 0; w < 4; w++) {
    const V e = exp(scores[w] - V::set1(m));
    e.store(row.weights + 16 * w);
    sum = sum + e;
  }
  *total = sum.sum();
  return m;
}

// block_weighted += e * v over slots [begin, end), ascending, for `kRows` rows.
template <class V, class Read, int kRows>
void weigh_values(QueryRow* rows, const typename Read::Element* values, std::int64_t head_dim,
                  std::int64_t begin, std::int64_t end, NextPlane next) {
  const auto line_bytes = head_dim * static_cast<std::int64_t>(sizeof(typename Read::Element));
  constexpr int kWide = V::kTileVectors;
  std::int64_t d = 0;
  const auto columns = [&]<int kVectors>() {
    V sums[kRows][kVectors];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; r++)
#pragma GCC unroll 4
      for (int w = 0; w < kVectors; w++) sums[r][w] = V::load(rows[r].block_weighted + d + 16 * w);
    for (std::int64_t slot = begin; slot < end; slot++) {
      if (d == 0) next.fetch(slot * line_bytes, line_bytes);
      V value[kVectors];
#pragma GCC unroll 4
      for (int w = 0; w < kVectors; w++) value[w] = Read::load(values + slot * head_dim + d + 16 * w);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; r++) {
        const V e = V::set1(rows[r].weights[slot]);
#pragma GCC unroll 4
        for (int w = 0; w < kVectors; w++) sums[r][w] = V::fma(e, value[w], sums[r][w]);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; r++)
#pragma GCC unroll 4
      for (int w = 0; w < kVectors; w++) sums[r][w].store(rows[r].block_weighted + d + 16 * w);
  };
  for (; d + 16 * kWide <= head_dim; d += 16 * kWide) columns.template operator()<kWide>();
  for (; d < head_dim; d += 16) columns.template operator()<1>();
}

template <class V>
void deliver_block(const AttentionArgs& a, QueryRow& row, std::int64_t block, float maximum, float total) {
  if (row.parts == nullptr) {
    merge_block<V>(row.state, a.head_dim, maximum, total, row.block_weighted);
    return;
  }
  float* part = row.parts + (block - a.parts_first) * part_elements(a.head_dim);
  for (std::int64_t d = 0; d < a.head_dim; d += 16) V::load(row.block_weighted + d).store(part + d);
  part[a.head_dim] = maximum;
  part[a.head_dim + 1] = total;
}

// Adds one block to `kRows` rows. Slots that all rows see are weighed together, the ragged ends row by row:
// the order within a row is the same either way.
template <class V, class Read, int kRows>
void attend_tile(const AttentionArgs& a, QueryRow* rows, std::int64_t block, const NextPlane& after) {
  using Element = typename Read::Element;
  const std::int64_t plane = rows[0].kv_head * a.head_dim * kBlockPositions, origin = block * kBlockPositions;
  std::int64_t begin = 0, end = kBlockPositions;
  bool any = false;
  for (int r = 0; r < kRows; r++) {
    QueryRow& row = rows[r];
    row.first = row.interval.lo > origin ? row.interval.lo - origin : 0;
    row.last = row.interval.hi < origin + kBlockPositions ? row.interval.hi - origin : kBlockPositions;
    if (row.first >= row.last) row.first = row.last = 0;
    any = any || row.first < row.last;
    begin = row.first > begin ? row.first : begin;
    end = row.last < end ? row.last : end;
  }
  if (!any) return;
  const Element* keys = static_cast<const Element*>(a.key_blocks[block]) + plane;
  const Element* values = static_cast<const Element*>(a.value_blocks[block]) + plane;
  const NextPlane none{nullptr};
  score_tile<V, Read, kRows>(rows, keys, a.head_dim, a.scale,
                             after.bytes == nullptr ? none : NextPlane{values});
  float maxima[kRows] = {}, totals[kRows] = {};
  for (int r = 0; r < kRows; r++) {
    if (rows[r].first == rows[r].last) continue;
    maxima[r] = soften<V>(rows[r], &totals[r]);
    for (std::int64_t d = 0; d < a.head_dim; d += 16) V::zero().store(rows[r].block_weighted + d);
    weigh_values<V, Read, 1>(rows + r, values, a.head_dim, rows[r].first, begin < end ? begin : rows[r].last,
                             none);
  }
  if (begin < end) weigh_values<V, Read, kRows>(rows, values, a.head_dim, begin, end, after);
  for (int r = 0; r < kRows; r++) {
    if (rows[r].first == rows[r].last) continue;
    if (begin < end) weigh_values<V, Read, 1>(rows + r, values, a.head_dim, end, rows[r].last, none);
    deliver_block<V>(a, rows[r], block, maxima[r], totals[r]);
  }
}

// Rows that share a KV head; the first tile asks for the plane that comes after this one.
template <class V, class Read>
void attend_tiles(const AttentionArgs& a, QueryRow* rows, int count, std::int64_t block,
                  const NextPlane& after) {
  static_assert(V::kTileRows == 2 || V::kTileRows == 4);
  for (int r = 0; r < count; r += V::kTileRows) {
    const int left = count - r;
    const NextPlane fetched = r == 0 ? after : NextPlane{nullptr};
    if constexpr (V::kTileRows == 4) {
      if (left >= 4) {
        attend_tile<V, Read, 4>(a, rows + r, block, fetched);
        continue;
      }
      if (left == 3) {
        attend_tile<V, Read, 3>(a, rows + r, block, fetched);
        continue;
      }
    }
    if (left >= 2) {
      attend_tile<V, Read, 2>(a, rows + r, block, fetched);
    } else {
      attend_tile<V, Read, 1>(a, rows + r, block, fetched);
    }
  }
}

// One block for all rows of the band, KV head by KV head as they lie in memory.
template <class V, class Read>
void attend_block(const AttentionArgs& a, QueryRow* rows, int count, std::int64_t block, bool is_last) {
  using Element = typename Read::Element;
  for (int r = 0; r < count;) {
    int end = r + 1;
    while (end < count && rows[end].kv_head == rows[r].kv_head) end++;
    NextPlane after{nullptr};
    if (end < count || !is_last) {
      const std::int64_t next_head = rows[end < count ? end : 0].kv_head;
      const void* next_keys = a.key_blocks[end < count ? block : block + 1];
      if (next_keys != nullptr)
        after.bytes = static_cast<const Element*>(next_keys) + next_head * a.head_dim * kBlockPositions;
    }
    attend_tiles<V, Read>(a, rows + r, end - r, block, after);
    r = end;
  }
}

template <class V, class Read>
void attend_band(const AttentionArgs& a, QueryRow* rows, int count) {
  std::int64_t lo = rows[0].interval.lo, hi = rows[0].interval.hi;
  for (int r = 0; r < count; r++) {
    clear<V>(rows[r].state, a.head_dim);
    lo = rows[r].interval.lo < lo ? rows[r].interval.lo : lo;
    hi = rows[r].interval.hi > hi ? rows[r].interval.hi : hi;
  }
  std::int64_t begin = lo / kBlockPositions, end = (hi + kBlockPositions - 1) / kBlockPositions;
  if (a.parts != nullptr) {
    begin = a.block_begin > begin ? a.block_begin : begin;
    end = a.block_end < end ? a.block_end : end;
  }
  for (std::int64_t block = begin; block < end; block++)
    attend_block<V, Read>(a, rows, count, block, block + 1 == end);
  if (a.parts != nullptr) return;
  for (int r = 0; r < count; r++) finish<V>(rows[r].state, rows[r].interval, a.head_dim, rows[r].out);
}

// A single query takes several KV heads into one band, so that a long context is read in the order it lies in
// memory; with many queries a band keeps to one KV head, whose blocks they share.
template <class V, class Read>
void attend_heads(const AttentionArgs& a) {
  const std::int64_t group = a.heads / a.kv_heads;
  const bool is_single = a.query_end - a.query_begin == 1;
  QueryRow rows[kBandRows];
  int count = 0;
  const auto flush = [&] {
    if (count > 0) attend_band<V, Read>(a, rows, count);
    count = 0;
  };
  for (std::int64_t head = a.head_begin; head < a.head_end;) {
    const std::int64_t kv_head = head / group, group_end = (kv_head + 1) * group;
    const std::int64_t end = group_end < a.head_end ? group_end : a.head_end;
    for (std::int64_t query = a.query_begin; query < a.query_end; query++)
      for (std::int64_t h = head; h < end; h++) {
        QueryRow& row = rows[count];
        const std::int64_t place = (query * a.heads + h) * a.parts_blocks * part_elements(a.head_dim);
        row.q = a.q + query * a.q_stride + h * a.head_dim;
        row.out = a.out + query * a.out_stride + h * a.head_dim;
        row.kv_head = kv_head;
        row.interval = a.intervals[query];
        row.parts = a.parts == nullptr ? nullptr : a.parts + place;
        if (++count == kBandRows) flush();
      }
    if (!is_single) flush();
    head = end;
  }
  flush();
}

template <class V>
Level attention_body(const AttentionArgs& a) {
  switch (a.type) {
    case KvType::f32:
      attend_heads<V, ReadF32<V>>(a);
      break;
    case KvType::f16:
      attend_heads<V, ReadF16<V>>(a);
      break;
    case KvType::bf16:
      attend_heads<V, ReadBf16<V>>(a);
      break;
  }
  return V::kLevel;
}

}  // namespace
}  // namespace godwit::kernels
