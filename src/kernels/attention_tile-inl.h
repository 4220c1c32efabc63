// Attention of a few query rows (query, head) over one KV head of one block: tiles of kTileRows rows share
// the loads. Part of the body of attention.h.
#pragma once

#include "kernels/attention.h"
#include "kernels/attention_weigh-inl.h"
#include "kernels/exp-inl.h"
#include "kernels/level.h"

namespace godwit::kernels {
namespace {

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

// Adds one block to `kRows` rows.
template <class V, class Read, int kRows>
void attend_tile(const AttentionArgs& a, QueryRow* rows, std::int64_t block,
                 const HeadPlanes<typename Read::Element>& planes, const NextPlane& after) {
  std::uint64_t seen = 0;
  for (int r = 0; r < kRows; r++) seen |= rows[r].slots;
  if (seen == 0) return;
  const NextPlane none{nullptr};
  const std::int64_t dim = a.values.dim;
  score_tile<V, Read, kRows>(rows, planes.keys, a.keys.dim, a.scale,
                             after.bytes == nullptr ? none : NextPlane{planes.values});
  float maxima[kRows] = {}, totals[kRows] = {};
  for (int r = 0; r < kRows; r++) {
    if (rows[r].slots == 0) continue;
    maxima[r] = soften<V>(rows[r], a.soft_cap, &totals[r]);
    for (std::int64_t d = 0; d < dim; d += 16) V::zero().store(rows[r].block_weighted + d);
  }
  weigh_block<V, Read, kRows>(rows, planes.values, dim, after);
  for (int r = 0; r < kRows; r++)
    if (rows[r].slots != 0) deliver_block<V>(a, rows[r], block, maxima[r], totals[r]);
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
