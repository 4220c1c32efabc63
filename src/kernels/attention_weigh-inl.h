// What the rows of a tile see of one block, and the weighted sums of its values. Part of the body of
// attention.h.
#pragma once

#include "kernels/attention.h"
#include "kernels/attention_merge-inl.h"

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
  const std::uint64_t* words;  // of its selection; null: everything
  SoftmaxState state;
  std::uint64_t slots;                // that it sees of the current block
  float weights[kBlockPositions];     // scores, then e, of the current block
  float block_weighted[kMaxHeadDim];  // sum of e * v within the current block
};

// A plane (one KV head of one block) that will be read next, or the part of it that one of several passes over the
// current one asks for: each step of a pass fetches as much of it as its share of what the step reads itself, so that
// the next passes find the plane near.
struct NextPlane {
  const void* bytes;  // null: nothing to fetch
  std::int64_t passes = 1;

  NextPlane part(int pass, int count, std::int64_t plane_bytes) const {
    if (bytes == nullptr) return *this;
    return {static_cast<const char*>(bytes) + plane_bytes * pass / count, count};
  }
  // What each step of a pass fetches whose steps read `count` bytes.
  std::int64_t piece(std::int64_t count) const { return (count + passes - 1) / passes; }
  [[gnu::always_inline]] void fetch(std::int64_t step, std::int64_t piece) const {
    if (bytes == nullptr) return;
    for (std::int64_t at = 0; at < piece; at += 64)
      __builtin_prefetch(static_cast<const char*>(bytes) + step * piece + at, 0, 2);
  }
};

inline std::int64_t first_slot(std::uint64_t slots) {
  return slots == 0 ? kBlockPositions : __builtin_ctzll(slots);
}
inline std::int64_t end_slot(std::uint64_t slots) {
  return slots == 0 ? 0 : kBlockPositions - __builtin_clzll(slots);
}
// No slot is missing between the first and the last.
inline bool is_run(std::uint64_t slots) {
  return slots == 0 || __builtin_popcountll(slots) == end_slot(slots) - first_slot(slots);
}

// Slots in ascending order: all of [begin, begin + count), or those of a set.
struct SlotRun {
  std::int64_t begin, count;
  std::int64_t operator[](std::int64_t i) const { return begin + i; }
};
struct SlotList {
  std::int64_t count = 0;
  std::uint8_t slot[kBlockPositions];

  explicit SlotList(std::uint64_t slots) {
    for (; slots != 0; slots &= slots - 1) slot[count++] = static_cast<std::uint8_t>(first_slot(slots));
  }
  std::int64_t operator[](std::int64_t i) const { return slot[i]; }
};

// block_weighted += e * v over `slots`, for `kRows` rows.
template <class V, class Read, int kRows, class Slots>
void weigh_values(QueryRow* rows, const typename Read::Element* values, std::int64_t head_dim,
                  const Slots& slots, NextPlane next) {
  const std::int64_t piece =
      next.piece(head_dim * static_cast<std::int64_t>(sizeof(typename Read::Element)));
  constexpr int kWide = V::kTileVectors;
  const std::int64_t count = slots.count;
  std::int64_t d = 0;
  const auto columns = [&]<int kVectors>() {
    V sums[kRows][kVectors];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; r++)
#pragma GCC unroll 4
      for (int w = 0; w < kVectors; w++) sums[r][w] = V::load(rows[r].block_weighted + d + 16 * w);
    for (std::int64_t i = 0; i < count; i++) {
      const std::int64_t slot = slots[i];
      if (d == 0) next.fetch(slot, piece);
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

// Rows that see runs of slots: what all see is weighed together, the ragged ends row by row.
template <class V, class Read, int kRows>
void weigh_runs(QueryRow* rows, const typename Read::Element* values, std::int64_t dim, NextPlane after) {
  const NextPlane none{nullptr};
  std::int64_t begin = 0, end = kBlockPositions;
  for (int r = 0; r < kRows; r++) {
    begin = first_slot(rows[r].slots) > begin ? first_slot(rows[r].slots) : begin;
    end = end_slot(rows[r].slots) < end ? end_slot(rows[r].slots) : end;
  }
  const bool is_shared = begin < end;
  for (int r = 0; r < kRows; r++) {
    const std::int64_t first = first_slot(rows[r].slots), last = is_shared ? begin : end_slot(rows[r].slots);
    if (first < last) weigh_values<V, Read, 1>(rows + r, values, dim, SlotRun{first, last - first}, none);
  }
  if (!is_shared) return;
  weigh_values<V, Read, kRows>(rows, values, dim, SlotRun{begin, end - begin}, after);
  for (int r = 0; r < kRows; r++)
    if (const std::int64_t last = end_slot(rows[r].slots); end < last)
      weigh_values<V, Read, 1>(rows + r, values, dim, SlotRun{end, last - end}, none);
}

// The values of a block for `kRows` rows whose weights are known. Each row's slots come in ascending order,
// whichever way is taken.
template <class V, class Read, int kRows>
void weigh_block(QueryRow* rows, const typename Read::Element* values, std::int64_t dim, NextPlane after) {
  bool are_runs = true, is_alike = true;
  for (int r = 0; r < kRows; r++) {
    are_runs = are_runs && is_run(rows[r].slots);
    is_alike = is_alike && rows[r].slots == rows[0].slots;
  }
  if (are_runs) return weigh_runs<V, Read, kRows>(rows, values, dim, after);
  const NextPlane none{nullptr};
  if (is_alike) return weigh_values<V, Read, kRows>(rows, values, dim, SlotList(rows[0].slots), none);
  for (int r = 0; r < kRows; r++)
    if (rows[r].slots != 0) weigh_values<V, Read, 1>(rows + r, values, dim, SlotList(rows[r].slots), none);
}

}  // namespace
}  // namespace godwit::kernels
