// Attention of a few query rows (query, head) over one KV head of one block: tiles of kTileRows rows share
// the loads. Part of the body of attention.h.
#pragma once

#include "kernels/attention.h"
#include "kernels/attention_weigh-inl.h"
#include "kernels/exp-inl.h"
#include "kernels/level.h"

namespace godwit::kernels {
namespace {

inline constexpr int kMostBandRows = 128;

// Scores of all 64 slots for `kRows` rows; slots past an interval get meaningless values, masked later.
template <class V, class Read, int kRows>
void score_tile(QueryRow* rows, const typename Read::Element* keys, std::int64_t head_dim, float scale,
                NextPlane next) {
  const std::int64_t piece = next.piece(kBlockPositions * sizeof(typename Read::Element));
  constexpr int kWide = V::kTileVectors;
  for (std::int64_t slot = 0; slot < kBlockPositions; slot += 16 * kWide) {
    V sums[kRows][kWide];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; r++)
#pragma GCC unroll 4
      for (int w = 0; w < kWide; w++) sums[r][w] = V::zero();
    for (std::int64_t d = 0; d < head_dim; d++) {
      if (slot == 0) next.fetch(d, piece);
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
  V scores[4], largest = lowest;
  for (int w = 0; w < 4; w++) {
    V score = V::load(row.weights + 16 * w);
    if (soft_cap > 0.0f) score = V::set1(soft_cap) * tanh(score / V::set1(soft_cap));
    scores[w] = V::where_set(static_cast<std::uint32_t>(row.slots >> 16 * w) & 0xffff, score, lowest);
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

inline bool sees_any(const QueryRow* rows, int count) {
  std::uint64_t seen = 0;
  for (int r = 0; r < count; r++) seen |= rows[r].slots;
  return seen != 0;
}

// Calls body<n>(r) for tiles of n rows from r on that see something of the block: all full but the last.
template <class V, class Body>
void each_tile(const QueryRow* rows, int count, Body&& body) {
  static_assert(V::kTileRows == 2 || V::kTileRows == 4);
  for (int r = 0; r < count; r += V::kTileRows) {
    const int left = count - r < V::kTileRows ? count - r : V::kTileRows;
    if (!sees_any(rows + r, left)) continue;
    if constexpr (V::kTileRows == 4) {
      if (left == 4) body.template operator()<4>(r);
      if (left == 3) body.template operator()<3>(r);
    }
    if (left == 2) body.template operator()<2>(r);
    if (left == 1) body.template operator()<1>(r);
  }
}

// Adds one block to rows that share a KV head. The tiles pass over the keys, then over the values, and ask for the
// plane that comes next a part each: memory is read all the while.
template <class V, class Read>
void attend_tiles(const AttentionArgs& a, QueryRow* rows, int count, std::int64_t block,
                  const HeadPlanes<typename Read::Element>& planes, const NextPlane& after) {
  const std::int64_t dim = a.values.dim, element = sizeof(typename Read::Element);
  const int tiles = (count + V::kTileRows - 1) / V::kTileRows;
  const NextPlane values{after.bytes == nullptr ? nullptr : planes.values};
  each_tile<V>(rows, count, [&]<int kRows>(int r) {
    const auto part = values.part(r / V::kTileRows, tiles, dim * kBlockPositions * element);
    score_tile<V, Read, kRows>(rows + r, planes.keys, a.keys.dim, a.scale, part);
  });
  float maxima[kMostBandRows], totals[kMostBandRows];
  const std::int64_t key_bytes = a.keys.dim * kBlockPositions * element;
  const NextPlane early = after.part(0, 2 * count, key_bytes);
  for (int r = 0; r < count; r++) {
    early.fetch(r, early.piece(key_bytes));
    if (rows[r].slots == 0) continue;
    maxima[r] = soften<V>(rows[r], a.soft_cap, &totals[r]);
    for (std::int64_t d = 0; d < dim; d += 16) V::zero().store(rows[r].block_weighted + d);
  }
  each_tile<V>(rows, count, [&]<int kRows>(int r) {
    const auto part = after.part(tiles + r / V::kTileRows, 2 * tiles, key_bytes);
    weigh_block<V, Read, kRows>(rows + r, planes.values, dim, part);
  });
  for (int r = 0; r < count; r++)
    if (rows[r].slots != 0) deliver_block<V>(a, rows[r], block, maxima[r], totals[r]);
}

}  // namespace
}  // namespace godwit::kernels
