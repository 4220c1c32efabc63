// The body of attention.h. A band of query rows (query, head) walks the blocks together, so each block is
// read from memory once for all of them. Dense planes are read where they lie; others are first decoded to
// f32, a KV head of a block at a time.
#pragma once

#include "kernels/attention_memory.h"
#include "kernels/attention_tile-inl.h"
#include "kernels/kv_decode-inl.h"

namespace godwit::kernels {
namespace {

inline constexpr int kBandRows = 16;
// Decoding a block costs as much as attending to it with a few rows.
inline constexpr int kDecodedBandRows = kMostBandRows;

// What each row sees of the block; the interval around all of it.
inline Interval look_at(QueryRow* rows, int count, std::int64_t block) {
  std::uint64_t seen = 0;
  for (int r = 0; r < count; r++) {
    rows[r].slots = seen_slots(rows[r].interval, rows[r].words, block);
    seen |= rows[r].slots;
  }
  return {first_slot(seen), end_slot(seen)};
}

// Where the band reads: `tiles` is null for planes that are read as they lie.
struct Walk {
  const AttentionArgs& a;
  float* tiles;  // [keys.dim, 64], then [64, values.dim]
};

template <class Read>
const typename Read::Element* keys_of(const AttentionArgs& a, const void* block, std::int64_t kv_head) {
  if (block == nullptr) return nullptr;
  return reinterpret_cast<const typename Read::Element*>(static_cast<const char*>(block) + a.keys.offset) +
         kv_head * a.keys.dim * kBlockPositions;
}

template <class V, class Read>
HeadPlanes<typename Read::Element> planes_of(const Walk& walk, std::int64_t block, std::int64_t kv_head,
                                             const Interval& slots) {
  const AttentionArgs& a = walk.a;
  if constexpr (Read::kHasTiles)
    if (walk.tiles != nullptr) {
      float* value_tile = walk.tiles + a.keys.dim * kBlockPositions;
      const DecodedHead head = decode_head<V>(
          {a.blocks[block], a.keys, a.values, kv_head, slots.lo, slots.hi, walk.tiles, value_tile});
      return {head.keys, head.values};
    }
  using Element = typename Read::Element;
  const char* bytes = static_cast<const char*>(a.blocks[block]);
  return {keys_of<Read>(a, bytes, kv_head), reinterpret_cast<const Element*>(bytes + a.values.offset) +
                                                kv_head * a.values.dim * kBlockPositions};
}

// One block for all rows of the band, KV head by KV head as they lie in memory.
template <class V, class Read>
void attend_block(const Walk& walk, QueryRow* rows, int count, std::int64_t block, bool is_last) {
  const AttentionArgs& a = walk.a;
  for (int r = 0; r < count;) {
    int end = r + 1;
    while (end < count && rows[end].kv_head == rows[r].kv_head) end++;
    const Interval slots = look_at(rows + r, end - r, block);
    if (slots.lo < slots.hi) {
      NextPlane after{nullptr};
      if (walk.tiles == nullptr && (end < count || !is_last))
        after.bytes =
            keys_of<Read>(a, a.blocks[end < count ? block : block + 1], rows[end < count ? end : 0].kv_head);
      const auto planes = planes_of<V, Read>(walk, block, rows[r].kv_head, slots);
      attend_tiles<V, Read>(a, rows + r, end - r, block, planes, after);
    }
    r = end;
  }
}

template <class V>
void open_row(QueryRow& row, std::int64_t dim) {
  if (row.resume != nullptr)
    restore<V>(row.state, dim, row.resume);
  else
    clear<V>(row.state, dim);
}

template <class V>
void close_row(QueryRow& row, std::int64_t dim) {
  if (row.leave != nullptr)
    save<V>(row.state, dim, row.leave);
  else
    finish<V>(row.state, dim, row.sink, row.out);
}

template <class V, class Read>
void attend_band(const Walk& walk, QueryRow* rows, int count) {
  const AttentionArgs& a = walk.a;
  std::int64_t lo = rows[0].interval.lo, hi = rows[0].interval.hi;
  for (int r = 0; r < count; r++) {
    open_row<V>(rows[r], a.values.dim);
    lo = rows[r].interval.lo < lo ? rows[r].interval.lo : lo;
    hi = rows[r].interval.hi > hi ? rows[r].interval.hi : hi;
  }
  std::int64_t begin = lo / kBlockPositions, end = (hi + kBlockPositions - 1) / kBlockPositions;
  if (a.parts != nullptr) {
    begin = a.block_begin > begin ? a.block_begin : begin;
    end = a.block_end < end ? a.block_end : end;
  }
  for (std::int64_t block = begin; block < end; block++)
    attend_block<V, Read>(walk, rows, count, block, block + 1 == end);
  if (a.parts != nullptr) return;
  for (int r = 0; r < count; r++) close_row<V>(rows[r], a.values.dim);
}

inline void set_row(const AttentionArgs& a, QueryRow& row, std::int64_t query, std::int64_t head) {
  const std::int64_t at = query * a.heads + head, part = part_elements(a.values.dim);
  row.q = a.q + query * a.q_stride + head * a.keys.dim;
  row.out = a.out + query * a.out_stride + head * a.values.dim;
  row.kv_head = head / (a.heads / a.keys.heads);
  row.interval = a.intervals[query];
  row.words = words_of(a.selected, query);
  row.parts = a.parts == nullptr ? nullptr : a.parts + at * a.parts_blocks * part;
  row.resume = a.resume == nullptr ? nullptr : a.resume + at * part;
  row.leave = a.leave == nullptr ? nullptr : a.leave + at * part;
  row.sink = a.sinks == nullptr ? nullptr : a.sinks + head;
}

// A single query takes several KV heads into one band, so that a long context is read in the order it lies in
// memory; with many queries a band keeps to one KV head, whose blocks they share.
template <class V, class Read>
void attend_heads(const Walk& walk, QueryRow* rows, int capacity) {
  const AttentionArgs& a = walk.a;
  const std::int64_t group = a.heads / a.keys.heads;
  const bool is_single = a.query_end - a.query_begin == 1;
  int count = 0;
  const auto flush = [&] {
    if (count > 0) attend_band<V, Read>(walk, rows, count);
    count = 0;
  };
  for (std::int64_t head = a.head_begin; head < a.head_end;) {
    const std::int64_t group_end = (head / group + 1) * group;
    const std::int64_t end = group_end < a.head_end ? group_end : a.head_end;
    for (std::int64_t query = a.query_begin; query < a.query_end; query++)
      for (std::int64_t h = head; h < end; h++) {
        set_row(a, rows[count], query, h);
        if (++count == capacity) flush();
      }
    if (!is_single) flush();
    head = end;
  }
  flush();
}

template <class V, class Read>
void attend_dense(const AttentionArgs& a) {
  QueryRow rows[kBandRows];
  attend_heads<V, Read>({a, nullptr}, rows, kBandRows);
}

template <class V>
void attend_decoded(const AttentionArgs& a) {
  const std::int64_t wanted = (a.query_end - a.query_begin) * (a.head_end - a.head_begin);
  const int capacity = wanted < kDecodedBandRows ? static_cast<int>(wanted) : kDecodedBandRows;
  const std::int64_t row_bytes = capacity * static_cast<std::int64_t>(sizeof(QueryRow));
  const std::int64_t tile_bytes = (a.keys.dim + a.values.dim) * kBlockPositions * 4;
  void* memory = attention_memory(tile_bytes + row_bytes);
  auto* rows = reinterpret_cast<QueryRow*>(static_cast<char*>(memory) + tile_bytes);
  attend_heads<V, ReadF32<V>>({a, static_cast<float*>(memory)}, rows, capacity);
}

template <class V>
Level attention_body(const AttentionArgs& a) {
  const bool is_shared = a.keys.offset == a.values.offset;
  if (a.keys.form != a.values.form || is_shared || a.keys.form > KvForm::bf16)
    attend_decoded<V>(a);
  else if (a.keys.form == KvForm::f32)
    attend_dense<V, ReadF32<V>>(a);
  else if (a.keys.form == KvForm::f16)
    attend_dense<V, ReadF16<V>>(a);
  else
    attend_dense<V, ReadBf16<V>>(a);
  return V::kLevel;
}

}  // namespace
}  // namespace godwit::kernels
