// How the blocks of attention.h come together: shared by the undivided walk and by attention_merge.
#pragma once

#include "kernels/attention.h"
#include "kernels/exp-inl.h"
#include "kernels/level.h"

namespace godwit::kernels {
namespace {

// A softmax over the blocks so far: the largest score, the sum of weights relative to it, the weighted
// values.
struct SoftmaxState {
  float maximum, total;
  float weighted[kMaxHeadDim];
};

template <class V>
void clear(SoftmaxState& state, std::int64_t head_dim) {
  state.maximum = -__builtin_huge_valf();
  state.total = 0.0f;
  for (std::int64_t d = 0; d < head_dim; d += 16) V::zero().store(state.weighted + d);
}

template <class V>
void merge_block(SoftmaxState& state, std::int64_t head_dim, float block_maximum, float block_total,
                 const float* block_weighted) {
  const V larger = V::max(V::set1(state.maximum), V::set1(block_maximum));
  const V keep = exp(V::set1(state.maximum) - larger), take = exp(V::set1(block_maximum) - larger);
  state.maximum = larger.first();
  state.total = V::fma(V::set1(state.total), keep, V::set1(block_total) * take).first();
  for (std::int64_t d = 0; d < head_dim; d += 16)
    V::fma(V::load(state.weighted + d), keep, V::load(block_weighted + d) * take).store(state.weighted + d);
}

template <class V>
void finish(const SoftmaxState& state, const Interval& interval, std::int64_t head_dim, float* out) {
  const V total = V::set1(interval.lo < interval.hi ? state.total : 1.0f);
  for (std::int64_t d = 0; d < head_dim; d += 16) (V::load(state.weighted + d) / total).store(out + d);
}

template <class V>
Level attention_merge_body(const AttentionMergeArgs& a) {
  SoftmaxState state;
  for (std::int64_t query = a.query_begin; query < a.query_end; query++)
    for (std::int64_t head = a.head_begin; head < a.head_end; head++) {
      const Interval seen = a.intervals[query];
      const float* parts = a.parts + (query * a.heads + head) * a.parts_blocks * part_elements(a.head_dim);
      clear<V>(state, a.head_dim);
      const std::int64_t first = seen.lo / kBlockPositions;
      for (std::int64_t block = first; seen.lo < seen.hi && block * kBlockPositions < seen.hi; block++) {
        const float* part = parts + (block - a.parts_first) * part_elements(a.head_dim);
        merge_block<V>(state, a.head_dim, part[a.head_dim], part[a.head_dim + 1], part);
      }
      finish<V>(state, seen, a.head_dim, a.out + query * a.out_stride + head * a.head_dim);
    }
  return V::kLevel;
}

}  // namespace
}  // namespace godwit::kernels
