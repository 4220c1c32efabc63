// How the blocks of attention.h come together: shared by the undivided walk and by attention_merge.
#pragma once

#include "kernels/attention.h"
#include "kernels/exp-inl.h"
#include "kernels/level.h"

namespace godwit::kernels {
namespace {

// The slots of a block that a query sees, the lowest bit the first. `words` of its selection; null: all.
inline std::uint64_t seen_slots(Interval interval, const std::uint64_t* words, std::int64_t block) {
  const std::int64_t origin = block * kBlockPositions;
  const std::int64_t first = interval.lo > origin ? interval.lo - origin : 0;
  const std::int64_t last =
      interval.hi < origin + kBlockPositions ? interval.hi - origin : kBlockPositions;
  if (first >= last) return 0;
  const std::uint64_t below = ~std::uint64_t{0} >> (kBlockPositions - last);
  const std::uint64_t inside = below & (~std::uint64_t{0} << first);
  return words == nullptr ? inside : inside & words[block];
}

inline const std::uint64_t* words_of(const Selection& selected, std::int64_t query) {
  return selected.words == nullptr ? nullptr : selected.words + query * selected.stride;
}

// A softmax over the blocks so far: the largest score, the sum of weights relative to it, the weighted
// values.
struct SoftmaxState {
  float maximum, total;
  float weighted[kMaxHeadDim];
};

template <class V>
void clear(SoftmaxState& state, std::int64_t dim) {
  state.maximum = -__builtin_huge_valf();
  state.total = 0.0f;
  for (std::int64_t d = 0; d < dim; d += 16) V::zero().store(state.weighted + d);
}

// To and from part_elements(dim) floats.
template <class V>
void save(const SoftmaxState& state, std::int64_t dim, float* part) {
  for (std::int64_t d = 0; d < dim; d += 16) V::load(state.weighted + d).store(part + d);
  part[dim] = state.maximum;
  part[dim + 1] = state.total;
}

template <class V>
void restore(SoftmaxState& state, std::int64_t dim, const float* part) {
  for (std::int64_t d = 0; d < dim; d += 16) V::load(part + d).store(state.weighted + d);
  state.maximum = part[dim];
  state.total = part[dim + 1];
}

template <class V>
void merge_block(SoftmaxState& state, std::int64_t dim, float block_maximum, float block_total,
                 const float* block_weighted) {
  const V larger = V::max(V::set1(state.maximum), V::set1(block_maximum));
  const V keep = exp(V::set1(state.maximum) - larger), take = exp(V::set1(block_maximum) - larger);
  state.maximum = larger.first();
  state.total = V::fma(V::set1(state.total), keep, V::set1(block_total) * take).first();
  for (std::int64_t d = 0; d < dim; d += 16)
    V::fma(V::load(state.weighted + d), keep, V::load(block_weighted + d) * take).store(state.weighted + d);
}

// A block whose values are zero.
template <class V>
void merge_sink(SoftmaxState& state, std::int64_t dim, float sink) {
  const V larger = V::max(V::set1(state.maximum), V::set1(sink));
  const V keep = exp(V::set1(state.maximum) - larger), take = exp(V::set1(sink) - larger);
  state.maximum = larger.first();
  state.total = V::fma(V::set1(state.total), keep, take).first();
  for (std::int64_t d = 0; d < dim; d += 16) (V::load(state.weighted + d) * keep).store(state.weighted + d);
}

// The total is zero exactly where nothing was seen: a block's largest score has e = 1.
template <class V>
void finish(SoftmaxState& state, std::int64_t dim, const float* sink, float* out) {
  const bool is_empty = state.total == 0.0f;
  if (sink != nullptr && !is_empty) merge_sink<V>(state, dim, *sink);
  const V total = V::set1(is_empty ? 1.0f : state.total);
  for (std::int64_t d = 0; d < dim; d += 16) (V::load(state.weighted + d) / total).store(out + d);
}

template <class V>
Level attention_merge_body(const AttentionMergeArgs& a) {
  SoftmaxState state;
  for (std::int64_t query = a.query_begin; query < a.query_end; query++)
    for (std::int64_t head = a.head_begin; head < a.head_end; head++) {
      const Interval seen = a.intervals[query];
      const float* parts = a.parts + (query * a.heads + head) * a.parts_blocks * part_elements(a.dim);
      clear<V>(state, a.dim);
      const std::int64_t first = seen.lo / kBlockPositions;
      for (std::int64_t block = first; seen.lo < seen.hi && block * kBlockPositions < seen.hi; block++) {
        if (seen_slots(seen, words_of(a.selected, query), block) == 0) continue;
        const float* part = parts + (block - a.parts_first) * part_elements(a.dim);
        merge_block<V>(state, a.dim, part[a.dim], part[a.dim + 1], part);
      }
      finish<V>(state, a.dim, a.sinks == nullptr ? nullptr : a.sinks + head,
                a.out + query * a.out_stride + head * a.dim);
    }
  return V::kLevel;
}

}  // namespace
}  // namespace godwit::kernels
