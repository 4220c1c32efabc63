// The body of kv_decode.h. Encoded records are read in chunks of 32 elements: no group is smaller, and a
// chunk of codes fills whole bytes at every width.
#pragma once

#include "kernels/kv_decode.h"
#include "kernels/level.h"
#include "kernels/turbo_tables.h"

namespace godwit::kernels {
namespace {

inline constexpr std::int64_t kChunk = 32;

// How a code becomes a number, given the parameters (p, q) of its group.
enum class DecodeRule {
  scaled,   // code * p + q
  shifted,  // (code + q) * p: the published turbo keys
  level,    // levels[code] * p
};

// Eight codes of kBits, the first in the lowest bits, as eight bytes. Reads up to 3 bytes behind them, which
// are a record's parameters.
template <int kBits>
[[gnu::always_inline]] inline std::uint64_t eight_codes(const unsigned char* from) {
  std::uint64_t word = 0;
  __builtin_memcpy(&word, from, kBits > 4 ? 8 : kBits > 2 ? 4 : 2);
  if constexpr (kBits == 8) return word;
  constexpr int kWidth = kBits == 8 ? 4 : kBits;
  constexpr std::uint64_t kHalf = (std::uint64_t{1} << 4 * kWidth) - 1;
  constexpr std::uint64_t kQuarter = ((std::uint64_t{1} << 2 * kWidth) - 1) * 0x0000000100000001u;
  constexpr std::uint64_t kEach = ((std::uint64_t{1} << kWidth) - 1) * 0x0001000100010001u;
  word = (word & kHalf) | (word >> 4 * kWidth) << 32;
  word = (word & kQuarter) | (word >> 2 * kWidth & kQuarter) << 16;
  return (word & kEach) | (word >> kWidth & kEach) << 8;
}

template <class V>
[[gnu::always_inline]] inline V parameter(const unsigned char* bytes) {
  std::uint16_t half;
  __builtin_memcpy(&half, bytes, 2);
  return V::set1(V::half(half));
}

// 32 elements from their codes and the parameters of their group.
template <class V, DecodeRule kRule, int kBits, bool kSigned>
[[gnu::always_inline]] inline void decode_chunk(const unsigned char* packed, const unsigned char* parameters,
                                                const float* levels, float* out) {
  const V p = parameter<V>(parameters);
#pragma GCC unroll 2
  for (int half = 0; half < 2; half++) {
    const std::uint64_t low = eight_codes<kBits>(packed + 2 * half * kBits);
    const std::uint64_t high = eight_codes<kBits>(packed + (2 * half + 1) * kBits);
    if constexpr (kRule == DecodeRule::level) {
      (V::template lookup<kBits>(levels, low, high) * p).store(out + 16 * half);
    } else {
      const V code = kSigned ? V::from_i8(low, high) : V::from_u8(low, high),
              q = parameter<V>(parameters + 2);
      (kRule == DecodeRule::scaled ? code * p + q : (code + q) * p).store(out + 16 * half);
    }
  }
}

// The records of one head of a plane.
struct Records {
  const unsigned char* bytes;
  std::int64_t record, dim, codes, group,
      parameters;  // bytes of a record, of its codes, of a group's parameters
};

// Element d of slot s goes to tile[s * dim + d], or with kTurned to tile[d * 64 + s].
template <class V, DecodeRule kRule, int kBits, bool kSigned, bool kTurned>
void decode_records(const Records& r, std::int64_t first, std::int64_t last, float* tile) {
  const float* levels = kRule == DecodeRule::level ? turbo_levels(kBits) : nullptr;
  const auto chunk = [&](std::int64_t slot, std::int64_t d, float* out) {
    const unsigned char* record = r.bytes + slot * r.record;
    decode_chunk<V, kRule, kBits, kSigned>(record + d * kBits / 8,
                                           record + r.codes + d / r.group * r.parameters, levels, out);
  };
  if constexpr (!kTurned) {
    for (std::int64_t slot = first; slot < last; slot++)
      for (std::int64_t d = 0; d < r.dim; d += kChunk) chunk(slot, d, tile + slot * r.dim + d);
    return;
  }
  alignas(64) float room[16 * kChunk] = {};
  for (std::int64_t slots = first / 16 * 16; slots < last; slots += 16)
    for (std::int64_t d = 0; d < r.dim; d += kChunk) {
      const std::int64_t begin = slots < first ? first : slots, end = slots + 16 < last ? slots + 16 : last;
      for (std::int64_t slot = begin; slot < end; slot++) chunk(slot, d, room + (slot - slots) * kChunk);
      for (int half = 0; half < kChunk; half += 16)
        V::transpose(room + half, kChunk, tile + (d + half) * kBlockPositions + slots, kBlockPositions);
    }
}

template <class V, DecodeRule kRule, int kBits, bool kSigned = false>
void decode_bits(const Records& r, bool is_turned, std::int64_t first, std::int64_t last, float* tile) {
  if (is_turned)
    decode_records<V, kRule, kBits, kSigned, true>(r, first, last, tile);
  else
    decode_records<V, kRule, kBits, kSigned, false>(r, first, last, tile);
}

template <class V, DecodeRule kRule>
void decode_rule(const Records& r, int bits, bool is_turned, std::int64_t first, std::int64_t last,
                 float* tile) {
  switch (bits) {
    case 2:
      return decode_bits<V, kRule, 2>(r, is_turned, first, last, tile);
    case 3:
      return decode_bits<V, kRule, 3>(r, is_turned, first, last, tile);
    case 4:
      return decode_bits<V, kRule, 4>(r, is_turned, first, last, tile);
    case 5:
      return decode_bits<V, kRule, 5>(r, is_turned, first, last, tile);
    case 6:
      if constexpr (kRule == DecodeRule::scaled)
        return decode_bits<V, kRule, 6>(r, is_turned, first, last, tile);
      return;
    default:
      return decode_bits<V, kRule, 8>(r, is_turned, first, last, tile);
  }
}

template <class V>
void decode_encoded(const KvPlane& plane, const unsigned char* bytes, std::int64_t head, bool is_turned,
                    std::int64_t first, std::int64_t last, float* tile) {
  const std::int64_t parameters = plane.form == KvForm::turbo_values ? 2 : 4;
  const std::int64_t codes = plane.dim * plane.bits / 8,
                     record = codes + plane.dim / plane.group * parameters;
  const Records r{bytes + head * kBlockPositions * record, record, plane.dim, codes, plane.group, parameters};
  if (plane.form == KvForm::turbo_values)
    decode_rule<V, DecodeRule::level>(r, plane.bits, is_turned, first, last, tile);
  else if (plane.form == KvForm::affine || (!plane.parity && plane.bits < 8))
    decode_rule<V, DecodeRule::scaled>(r, plane.bits, is_turned, first, last, tile);
  else if (!plane.parity)
    decode_bits<V, DecodeRule::scaled, 8, true>(r, is_turned, first, last, tile);
  else if (plane.bits == 8)
    decode_bits<V, DecodeRule::shifted, 8, true>(r, is_turned, first, last, tile);
  else
    decode_rule<V, DecodeRule::shifted>(r, plane.bits, is_turned, first, last, tile);
}

// Elements [begin, end) of a dense plane, which lie as the tile does.
template <class V>
void widen(const KvPlane& plane, const void* elements, std::int64_t begin, std::int64_t end, float* tile) {
  const auto* wide = static_cast<const float*>(elements);
  const auto* narrow = static_cast<const std::uint16_t*>(elements);
  for (std::int64_t i = begin; i < end; i += 16) {
    const V x = plane.form == KvForm::f32   ? V::load(wide + i)
                : plane.form == KvForm::f16 ? V::load_f16(narrow + i)
                                            : V::load_bf16(narrow + i);
    x.store(tile + i);
  }
}

// One head of a plane as keys [dim, 64] or values [64, dim].
template <class V>
void decode_plane(const KvPlane& plane, const void* block, std::int64_t head, bool is_keys,
                  std::int64_t first, std::int64_t last, float* tile) {
  const unsigned char* bytes = static_cast<const unsigned char*>(block) + plane.offset;
  if (plane.form > KvForm::bf16) return decode_encoded<V>(plane, bytes, head, is_keys, first, last, tile);
  const std::int64_t size = plane.form == KvForm::f32 ? 4 : 2, count = plane.dim * kBlockPositions;
  widen<V>(plane, bytes + head * count * size, is_keys ? 0 : first * plane.dim,
           is_keys ? count : last * plane.dim, tile);
}

// keys [dim, 64] -> values [64, dim].
template <class V>
void turn_keys(const float* keys, std::int64_t dim, float* values) {
  for (std::int64_t d = 0; d < dim; d += 16)
    for (std::int64_t slot = 0; slot < kBlockPositions; slot += 16)
      V::transpose(keys + d * kBlockPositions + slot, kBlockPositions, values + slot * dim + d, dim);
}

struct DecodedHead {
  const float* keys;
  const float* values;
};

// Dense f32 is used where it lies, everything else goes through the tiles.
template <class V>
DecodedHead decode_head(const DecodeKvArgs& a) {
  const auto plane = [&](const KvPlane& p, bool is_keys, float* tile) -> const float* {
    if (p.form == KvForm::f32)
      return reinterpret_cast<const float*>(static_cast<const char*>(a.block) + p.offset) +
             a.head * p.dim * kBlockPositions;
    decode_plane<V>(p, a.block, a.head, is_keys, a.first, a.last, tile);
    return tile;
  };
  const float* keys = plane(a.keys, true, a.key_tile);
  if (a.keys.offset != a.values.offset) return {keys, plane(a.values, false, a.value_tile)};
  turn_keys<V>(keys, a.values.dim, a.value_tile);
  return {keys, a.value_tile};
}

template <class V>
Level decode_kv_body(const DecodeKvArgs& a) {
  decode_plane<V>(a.keys, a.block, a.head, true, a.first, a.last, a.key_tile);
  if (a.keys.offset == a.values.offset)
    turn_keys<V>(a.key_tile, a.values.dim, a.value_tile);
  else
    decode_plane<V>(a.values, a.block, a.head, false, a.first, a.last, a.value_tile);
  return V::kLevel;
}

}  // namespace
}  // namespace godwit::kernels
