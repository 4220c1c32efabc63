// Attention of a few query rows (query, head) over one KV head of one block: tiles of kTileRows rows share
// the loads. Part of the body of attention.h.
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
  static constexpr bool kHasTiles = true;
  static V load(const float* p) { return V::load(p); }
};
template <class V>
struct ReadF16 {
  using Element = std::uint16_t;
  static constexpr bool kHasTiles = false;
  static V load(const std::uint16_t* p) { return V::load_f16(p); }
};
template <class V>
struct ReadBf16 {
  using Element = std::uint16_t;
  static constexpr bool kHasTiles = false;
  static V load(const std::uint16_t* p) { return V::load_bf16(p); }
};

// One query row of the band: its inputs, its running state, and its share of the current block.
struct QueryRow {
  const float* q;
  float* out;
  float* parts;  // of its block parts_first; null when blocks are merged at once
  const float* resume;
  float* leave;
  const float* sink;
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
float soften(QueryRow& row, float soft_cap, float* total) {
  const V lowest = V::set1(-__builtin_huge_valf());
  const V first = V::set1(static_cast<float>(row.first)), last = V::set1(static_cast<float>(row.last));
  V scores[4], largest = lowest;
  for (int w = 0; w < 4; w++) {
    const V slot = V::iota() + V::set1(static_cast<float>(16 * w));
    V score = V::load(row.weights + 16 * w);
    if (soft_cap > 0.0f) score = V::set1(soft_cap) * tanh(score / V::set1(soft_cap));
    score = V::where_less(slot, last, score, lowest);
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
  const std::int64_t dim = a.values.dim;
  if (row.parts == nullptr) {
    merge_block<V>(row.state, dim, maximum, total, row.block_weighted);
    return;
  }
  float* part = row.parts + (block - a.parts_first) * part_elements(dim);
  for (std::int64_t d = 0; d < dim; d += 16) V::load(row.block_weighted + d).store(part + d);
  part[dim] = maximum;
  part[dim + 1] = total;
}

// A KV head of a block: keys [dim, 64], values [64, dim].
template <class Element>
struct HeadPlanes {
  const Element* keys;
  const Element* values;
};

// Adds one block to `kRows` rows. Slots that all rows see are weighed together, the ragged ends row by row:
// the order within a row is the same either way.
template <class V, class Read, int kRows>
void attend_tile(const AttentionArgs& a, QueryRow* rows, std::int64_t block,
                 const HeadPlanes<typename Read::Element>& planes, const NextPlane& after) {
  std::int64_t begin = 0, end = kBlockPositions;
  bool any = false;
  for (int r = 0; r < kRows; r++) {
    any = any || rows[r].first < rows[r].last;
    begin = rows[r].first > begin ? rows[r].first : begin;
    end = rows[r].last < end ? rows[r].last : end;
  }
  if (!any) return;
  const NextPlane none{nullptr};
  const auto* values = planes.values;
  const std::int64_t dim = a.values.dim;
  score_tile<V, Read, kRows>(rows, planes.keys, a.keys.dim, a.scale,
                             after.bytes == nullptr ? none : NextPlane{values});
  float maxima[kRows] = {}, totals[kRows] = {};
  for (int r = 0; r < kRows; r++) {
    if (rows[r].first == rows[r].last) continue;
    maxima[r] = soften<V>(rows[r], a.soft_cap, &totals[r]);
    for (std::int64_t d = 0; d < dim; d += 16) V::zero().store(rows[r].block_weighted + d);
    weigh_values<V, Read, 1>(rows + r, values, dim, rows[r].first, begin < end ? begin : rows[r].last, none);
  }
  if (begin < end) weigh_values<V, Read, kRows>(rows, values, dim, begin, end, after);
  for (int r = 0; r < kRows; r++) {
    if (rows[r].first == rows[r].last) continue;
    if (begin < end) weigh_values<V, Read, 1>(rows + r, values, dim, end, rows[r].last, none);
    deliver_block<V>(a, rows[r], block, maxima[r], totals[r]);
  }
}

// Rows that share a KV head; the first tile asks for the plane that comes after this one.
template <class V, class Read>
void attend_tiles(const AttentionArgs& a, QueryRow* rows, int count, std::int64_t block,
                  const HeadPlanes<typename Read::Element>& planes, const NextPlane& after) {
  static_assert(V::kTileRows == 2 || V::kTileRows == 4);
  for (int r = 0; r < count; r += V::kTileRows) {
    const int left = count - r;
    const NextPlane fetched = r == 0 ? after : NextPlane{nullptr};
    if constexpr (V::kTileRows == 4) {
      if (left >= 4) {
        attend_tile<V, Read, 4>(a, rows + r, block, planes, fetched);
        continue;
      }
      if (left == 3) {
        attend_tile<V, Read, 3>(a, rows + r, block, planes, fetched);
        continue;
      }
    }
    if (left >= 2) {
      attend_tile<V, Read, 2>(a, rows + r, block, planes, fetched);
    } else {
      attend_tile<V, Read, 1>(a, rows + r, block, planes, fetched);
    }
  }
}

}  // namespace
}  // namespace godwit::kernels
