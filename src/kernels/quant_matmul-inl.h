// The vector body of quant_matmul.h, over a level's dots (D) and a packed format (F). A tile is kM activation
// rows times kStreams registers of output rows: many rows share one decoded group; a single row instead walks
// several bands at once, so that more of the memory system is kept busy. The order of float operations per
// output is that of the scalar body in every tile.
#pragma once

#include "kernels/quant_formats-inl.h"
#include "kernels/quant_matmul.h"
#include "kernels/quant_matmul_f32-inl.h"

namespace godwit::kernels {
namespace {

// acc += one group of one activation row. Inlined by force: a call would push the codes through memory.
template <class D, class F>
[[gnu::always_inline]] inline typename D::Floats add_group(const Group<D>& group, const Activations& x,
                                                           std::int64_t at, typename D::Floats acc) {
  constexpr bool kStaysSigned = F::kIsSigned && !D::kFlipsSign;
  constexpr int kOffset = kStaysSigned ? F::kOffset - 128 : F::kOffset;
  const std::int8_t* values = x.values + at * 32;
  const float* scales = x.scales + 2 * at;
  const std::int32_t* code_sums = x.code_sums + 2 * at;
  typename D::Floats dots[2];
#pragma GCC unroll 2
  for (int half = 0; half < 2; half++) {
    typename D::Ints dot;
    if constexpr (kStaysSigned)
      dot = D::template dot_signed<4>(group.codes + 4 * half, values + 16 * half);
    else
      dot = D::template dot<F::kLargest, 4>(group.codes + 4 * half, values + 16 * half);
    if constexpr (kOffset != 0) dot = D::template minus_offset<kOffset>(dot, code_sums[half]);
    dots[half] = D::to_floats(dot);
  }
  if constexpr (F::kSplit) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
      acc = D::fma(dots[half], D::mul(group.scales[half], D::set1(scales[half])), acc);
      if constexpr (F::kHasMinimum) {
        const float sum = scales[half] * static_cast<float>(code_sums[half]);
        acc = D::fma(group.addends[half], D::set1(sum), acc);
      }
    }
    return acc;
  } else {
    const auto dot = D::fma(dots[1], D::set1(scales[1]), D::mul(dots[0], D::set1(scales[0])));
    acc = D::fma(dot, group.scales[0], acc);
    if constexpr (F::kHasMinimum) acc = D::fma(group.addends[0], D::set1(x.sums[at]), acc);
    return acc;
  }
}

template <class D, int kM, int kStreams>
[[gnu::always_inline]] inline void store_tile(const QuantMatmulArgs& a,
                                              const typename D::Floats (&acc)[kStreams][kM],
                                              std::int64_t band, int part, std::int64_t m) {
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

// Output rows of bands from `band` on, activation rows from `m` on. With one stream `part` says which
// register of the band, with more they cover whole bands.
template <class D, class F, int kM, int kStreams>
void multiply_tile(const QuantMatmulArgs& a, std::int64_t band, int part, std::int64_t m) {
  const bool is_first_visit = part == 0 && m == a.m_begin;
  const F format = make_format<F>(a.shape.format);
  const int per_record = F::kGroups != 0 ? F::kGroups : a.shape.format.group / 32;
  const std::int64_t record_bytes = head_bytes(format) + per_record * F::kGroupBytes;
  const std::int64_t groups = a.shape.columns / 32, records = groups / per_record;
  const std::int64_t band_stride = records * record_bytes;
  const auto* first = reinterpret_cast<const std::uint8_t*>(a.packed) + band * band_stride;
  typename D::Floats acc[kStreams][kM];
#pragma GCC unroll 8
  for (int s = 0; s < kStreams; s++)
#pragma GCC unroll 8
    for (int i = 0; i < kM; i++) acc[s][i] = D::zero();
  // Past the end of its band a stream goes on in the next tile, after the other streams' bands.
  constexpr int kBands = kStreams == 1 ? 1 : kStreams / kParts<D>;
  for (std::int64_t record = 0; record < records; record++) {
    const bool is_near_end = record * record_bytes + kAhead >= band_stride;
    const std::int64_t ahead = is_near_end ? kAhead + (kBands - 1) * band_stride : kAhead;
    for (int g = 0; g < per_record; g++)
#pragma GCC unroll 8
      for (int s = 0; s < kStreams; s++) {
        const int s_part = kStreams == 1 ? part : s % kParts<D>;
        const std::uint8_t* bytes = first + s / kParts<D> * band_stride + record * record_bytes;
        if (is_first_visit && s_part == 0) prefetch_group<F>(bytes + ahead + g * F::kGroupBytes);
        Group<D> group;
        format.template read<D>(bytes, g, s_part, group);
#pragma GCC unroll 8
        for (int i = 0; i < kM; i++) {
          const std::int64_t at = (m + i) * groups + record * per_record + g;
          acc[s][i] = add_group<D, F>(group, a.x, at, acc[s][i]);
        }
      }
  }
  store_tile<D, kM, kStreams>(a, acc, band, part, m);
}

// Input by input, each a step of every accumulator's chain; the same meaning of the parameters.
template <class D, class F, int kM, int kStreams>
void multiply_dense_tile(const QuantMatmulArgs& a, std::int64_t band, int part, std::int64_t m) {
  constexpr std::int64_t kLine = 2 * kPackedRows;  // one input of a band
  const bool is_first_visit = m == a.m_begin;
  const std::int64_t columns = a.shape.columns, band_stride = columns * kLine;
  const auto* first = reinterpret_cast<const std::uint8_t*>(a.packed) + band * band_stride;
  const float* x = a.x.rows + m * columns;
  typename D::Floats acc[kStreams][kM];
#pragma GCC unroll 8
  for (int s = 0; s < kStreams; s++)
#pragma GCC unroll 8
    for (int i = 0; i < kM; i++) acc[s][i] = D::zero();
  for (std::int64_t k = 0; k < columns; k++) {
    typename D::Floats inputs[kM];
#pragma GCC unroll 8
    for (int i = 0; i < kM; i++) inputs[i] = D::set1(x[i * columns + k]);
#pragma GCC unroll 8
    for (int s = 0; s < kStreams; s++) {
      const int s_part = kStreams == 1 ? part : s % kParts<D>;
      const std::uint8_t* line = first + s / kParts<D> * band_stride + k * kLine;
      if (is_first_visit && s_part == 0 && k % 2 == 0) __builtin_prefetch(line + kAhead);
      const auto weights = load_scales<D, F::kType>(line, s_part);
#pragma GCC unroll 8
      for (int i = 0; i < kM; i++) acc[s][i] = D::fma(weights, inputs[i], acc[s][i]);
    }
  }
  store_tile<D, kM, kStreams>(a, acc, band, part, m);
}

template <class D, class F, int kM>
void multiply_band(const QuantMatmulArgs& a, std::int64_t band, std::int64_t m) {
  if constexpr (kIsDense<F>) {
    multiply_dense_tile<D, F, kM, kParts<D>>(a, band, 0,
                                             m);  // all parts at once: longer than the chain's latency
  } else {
#pragma GCC unroll 2
    for (int part = 0; part < kParts<D>; part++) multiply_tile<D, F, kM, 1>(a, band, part, m);
  }
}

// One activation row: bands four by four, then one by one.
template <class D, class F>
void multiply_single(const QuantMatmulArgs& a, std::int64_t m) {
  constexpr int kBands = 4;
  std::int64_t band = a.band_begin;
  for (; band + kBands <= a.band_end; band += kBands)
    if constexpr (kIsDense<F>)
      multiply_dense_tile<D, F, 1, kBands * kParts<D>>(a, band, 0, m);
    else
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
  if (m + 3 == end) return multiply_band<D, F, 3>(a, band, m);  // for little more than one, which reads as much
  if (m + 2 == end) return multiply_band<D, F, 2>(a, band, m);
  if (m + 1 == end) multiply_band<D, F, 1>(a, band, m);
}

template <class D, class F>
Level multiply(const QuantMatmulArgs& a) {
  // Activations of a stretch stay in the second-level cache while all bands pass by.
  constexpr std::int64_t kStretchBytes = 512 * 1024, kInputBytes = kIsDense<F> ? 4 : 1;
  const std::int64_t fitting = kStretchBytes / (a.shape.columns * kInputBytes) / D::kTile * D::kTile;
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

template <class D, int kBits, ScaleType kScales>
Level multiply_scaled(const QuantMatmulArgs& a) {
  return a.shape.format.group == 32 ? multiply<D, PackedAffine<kBits, kScales, 1>>(a)
                                    : multiply<D, PackedAffine<kBits, kScales, 0>>(a);
}

template <class D, int kBits>
Level multiply_affine(const QuantMatmulArgs& a) {
  switch (a.shape.format.scales) {
    case ScaleType::f16:
      return multiply_scaled<D, kBits, ScaleType::f16>(a);
    case ScaleType::bf16:
      return multiply_scaled<D, kBits, ScaleType::bf16>(a);
    case ScaleType::f32:
      return multiply_scaled<D, kBits, ScaleType::f32>(a);
  }
  return D::kLevel;
}

template <class D, int kBits>
Level multiply_open_affine(const QuantMatmulArgs& a) {
  return a.shape.format.group == 32 ? multiply<D, PackedOpenAffine<kBits, 1>>(a)
                                    : multiply<D, PackedOpenAffine<kBits, 0>>(a);
}

template <class D>
Level quant_matmul_body(const QuantMatmulArgs& a) {
  const bool has_codes = a.shape.format.codes != PackedCodes::dense;
  if (has_codes && a.x.form == ActivationForm::f32) return multiply_floats<D>(a);
  switch (a.shape.format.codes) {
    case PackedCodes::q8_0:
      return multiply<D, PackedQ8_0>(a);
    case PackedCodes::q5_0:
      return multiply<D, PackedQ5_0>(a);
    case PackedCodes::q5_1:
      return multiply<D, PackedQ5_1>(a);
    case PackedCodes::q4_0:
      return multiply<D, PackedQ4_0>(a);
    case PackedCodes::q4_1:
      return multiply<D, PackedQ4_1>(a);
    case PackedCodes::q4_k:
      return multiply<D, PackedQ4_K>(a);
    case PackedCodes::q5_k:
      return multiply<D, PackedQ5_K>(a);
    case PackedCodes::q6_k:
      return multiply<D, PackedQ6_K>(a);
    case PackedCodes::q3_k:
      return multiply<D, PackedQ3_K>(a);
    case PackedCodes::q2_k:
      return multiply<D, PackedQ2_K>(a);
    case PackedCodes::iq4_nl:
      return multiply<D, PackedIq4Nl>(a);
    case PackedCodes::iq4_xs:
      return multiply<D, PackedIq4Xs>(a);
    case PackedCodes::mxfp4:
      return multiply<D, PackedMxfp4>(a);
    case PackedCodes::affine2:
      return multiply_open_affine<D, 2>(a);
    case PackedCodes::affine3:
      return multiply_open_affine<D, 3>(a);
    case PackedCodes::affine5:
      return multiply_open_affine<D, 5>(a);
    case PackedCodes::affine6:
      return multiply_open_affine<D, 6>(a);
    case PackedCodes::affine4:
      return multiply_affine<D, 4>(a);
    case PackedCodes::affine8:
      return multiply_affine<D, 8>(a);
    case PackedCodes::dense:
      return a.shape.format.scales == ScaleType::f16 ? multiply<D, PackedDense<ScaleType::f16>>(a)
                                                     : multiply<D, PackedDense<ScaleType::bf16>>(a);
  }
  return D::kLevel;
}

}  // namespace
}  // namespace godwit::kernels
