// The vector body of quant_matmul.h, over a level's dots (D) and a packed format (F). A tile is kM activation
// rows times kStreams registers of output rows: many rows share one decoded group; a single row instead walks
// several bands at once, so that more of the memory system is kept busy. The order of float operations per
// output is that of the scalar body in every tile.
#pragma once

#include "kernels/quant_formats-inl.h"
#include "kernels/quant_matmul.h"

namespace godwit::kernels {
namespace {

template <class D>
inline constexpr int kParts = static_cast<int>(kPackedRows) / D::kRows;

// acc += one group of one activation row. Inlined by force: a call would push the codes through memory.
template <class D, class F>
[[gnu::always_inline]] inline typename D::Floats add_group(const Group<D>& group, const Activations& x,
                                                           std::int64_t at, typename D::Floats acc) {
  const std::int8_t* values = x.values + at * 32;
  const auto scale = D::set1(x.scales[at]);
  if constexpr (F::kSplit) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
      const auto dot = D::template dot<F::kLargest, 4>(group.codes + 4 * half, values + 16 * half);
      const auto shifted = D::template minus_offset<F::kOffset>(dot, x.half_sums[2 * at + half]);
      acc = D::fma(D::to_floats(shifted), D::mul(group.scales[half], scale), acc);
    }
    return acc;
  } else {
    typename D::Ints dot;
    if constexpr (F::kIsSigned && !D::kFlipsSign) {
      dot = D::template dot_signed<8>(group.codes, values);
    } else {
      dot = D::template dot<F::kLargest, 8>(group.codes, values);
      if constexpr (F::kOffset != 0)
        dot = D::template minus_offset<F::kOffset>(dot, x.half_sums[2 * at] + x.half_sums[2 * at + 1]);
    }
    acc = D::fma(D::to_floats(dot), D::mul(group.scales[0], scale), acc);
    if constexpr (F::kHasMinimum) acc = D::fma(group.addend, D::set1(x.sums[at]), acc);
    return acc;
  }
}

// How far ahead of its use a group is asked for: more than the hardware looks ahead by itself.
inline constexpr std::int64_t kAhead = 2048;

template <class F>
[[gnu::always_inline]] inline void prefetch_group(const std::uint8_t* bytes) {
  constexpr int kBytes = F::kGroupBytes + F::kHead / F::kGroups;
#pragma GCC unroll 9
  for (int line = 0; line < kBytes; line += 64) __builtin_prefetch(bytes + line);
}

// Output rows of bands from `band` on, activation rows from `m` on. With one stream `part` says which
// register of the band, with more they cover whole bands.
template <class D, class F, int kM, int kStreams>
void multiply_tile(const QuantMatmulArgs& a, std::int64_t band, int part, std::int64_t m) {
  const bool is_first_visit = part == 0 && m == a.m_begin;
  constexpr std::int64_t kRecord = F::kHead + F::kGroups * F::kGroupBytes;
  const std::int64_t groups = a.shape.columns / 32, band_stride = groups / F::kGroups * kRecord;
  const auto* first = reinterpret_cast<const std::uint8_t*>(a.packed) + band * band_stride;
  typename D::Floats acc[kStreams][kM];
#pragma GCC unroll 8
  for (int s = 0; s < kStreams; s++)
#pragma GCC unroll 8
    for (int i = 0; i < kM; i++) acc[s][i] = D::zero();
  // Past the end of its band a stream goes on in the next tile, after the other streams' bands.
  constexpr int kBands = kStreams == 1 ? 1 : kStreams / kParts<D>;
  for (std::int64_t record = 0; record < groups / F::kGroups; record++) {
    const bool is_near_end = record * kRecord + kAhead >= band_stride;
    const std::int64_t ahead = is_near_end ? kAhead + (kBands - 1) * band_stride : kAhead;
    for (int g = 0; g < F::kGroups; g++)
#pragma GCC unroll 8
      for (int s = 0; s < kStreams; s++) {
        const int s_part = kStreams == 1 ? part : s % kParts<D>;
        const std::uint8_t* bytes = first + s / kParts<D> * band_stride + record * kRecord;
        if (is_first_visit && s_part == 0) prefetch_group<F>(bytes + ahead + g * F::kGroupBytes);
        Group<D> group;
        F::template read<D>(bytes, g, s_part, group);
#pragma GCC unroll 8
        for (int i = 0; i < kM; i++) {
          const std::int64_t at = (m + i) * groups + record * F::kGroups + g;
          acc[s][i] = add_group<D, F>(group, a.x, at, acc[s][i]);
        }
      }
  }
#pragma GCC unroll 8
  for (int s = 0; s < kStreams; s++) {
    const int s_part = kStreams == 1 ? part : s % kParts<D>;
    const std::int64_t row = (band + s / kParts<D>)*kPackedRows + s_part * D::kRows;
    if (row >= a.shape.rows) continue;
#pragma GCC unroll 8
    for (int i = 0; i < kM; i++)
      D::store(a.y + (m + i) * a.y_stride + row, acc[s][i], a.shape.rows - row, a.accumulate);
  }
}

template <class D, class F, int kM>
void multiply_band(const QuantMatmulArgs& a, std::int64_t band, std::int64_t m) {
#pragma GCC unroll 2
  for (int part = 0; part < kParts<D>; part++) multiply_tile<D, F, kM, 1>(a, band, part, m);
}

// One activation row: bands four by four, then one by one.
template <class D, class F>
void multiply_single(const QuantMatmulArgs& a, std::int64_t m) {
  constexpr int kBands = 4;
  std::int64_t band = a.band_begin;
  for (; band + kBands <= a.band_end; band += kBands)
    multiply_tile<D, F, 1, kBands * kParts<D>>(a, band, 0, m);
  for (; band < a.band_end; band++) multiply_band<D, F, 1>(a, band, m);
}

// Rows [m, end) of a stretch, the largest tile first.
template <class D, class F>
void multiply_stretch(const QuantMatmulArgs& a, std::int64_t band, std::int64_t m, std::int64_t end) {
  for (; m + D::kTile <= end; m += D::kTile) multiply_band<D, F, D::kTile>(a, band, m);
  if constexpr (D::kTile == 8)
    if (m + 4 <= end) {
      multiply_band<D, F, 4>(a, band, m);
      m += 4;
    }
  if (m + 2 <= end) {
    multiply_band<D, F, 2>(a, band, m);
    m += 2;
  }
  if (m < end) multiply_band<D, F, 1>(a, band, m);
}

template <class D, class F>
Level multiply(const QuantMatmulArgs& a) {
  // Activations of a stretch stay in the second-level cache while all bands pass by.
  constexpr std::int64_t kStretchBytes = 512 * 1024;
  const std::int64_t fitting = kStretchBytes / a.shape.columns / D::kTile * D::kTile;
  const std::int64_t stretch = fitting < D::kTile ? D::kTile : fitting;
  for (std::int64_t m = a.m_begin; m < a.m_end; m += stretch) {
    const std::int64_t end = m + stretch < a.m_end ? m + stretch : a.m_end;
    if (end - m == 1) {
      multiply_single<D, F>(a, m);
      continue;
    }
    for (std::int64_t band = a.band_begin; band < a.band_end; band++) multiply_stretch<D, F>(a, band, m, end);
  }
  return D::kLevel;
}

// Formats without a packed layout never get here: pack_bands() refuses them.
template <class D>
Level quant_matmul_body(const QuantMatmulArgs& a) {
  switch (a.shape.format) {
    case BlockFormat::q8_0:
      return multiply<D, PackedQ8_0>(a);
    case BlockFormat::q5_0:
      return multiply<D, PackedQ5_0>(a);
    case BlockFormat::q4_0:
      return multiply<D, PackedQ4_0>(a);
    case BlockFormat::q4_1:
      return multiply<D, PackedQ4_1>(a);
    case BlockFormat::q4_k:
      return multiply<D, PackedQ4_K>(a);
    case BlockFormat::q6_k:
      return multiply<D, PackedQ6_K>(a);
    default:
      return D::kLevel;
  }
}

}  // namespace
}  // namespace godwit::kernels
