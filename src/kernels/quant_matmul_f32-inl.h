// The vector body of quant_matmul.h for f32 activations. Weights are decoded to a panel of numbers that stays
// in the first-level cache, and every activation row of a stretch passes over it: no body of a product is
// compiled for a format, only its decoder. Sums are kept in memory between panels.
#pragma once

#include "kernels/quant_formats-inl.h"
#include "kernels/quant_matmul.h"

namespace godwit::kernels {
namespace {

// The 32 inputs of group `index` of a record as numbers [32][16 rows].
using DecodeGroup = void (*)(const PackedFormat& format, const std::uint8_t* record, int index,
                             float* values);

template <class D, class F, int kByte>
[[gnu::always_inline]] inline void decode_byte(const Group<D>& group, int step, float* values) {
  constexpr bool kStaysSigned = F::kIsSigned && !D::kFlipsSign;
  constexpr int kOffset = kStaysSigned ? F::kOffset - 128 : F::kOffset;
  const auto code = D::template byte_at<kByte, kStaysSigned>(group.codes[step]);
  auto value = D::mul(group.scales[F::kSplit ? step / 4 : 0],
                      D::to_floats(D::template minus_offset<kOffset>(code, 1)));
  if constexpr (F::kHasMinimum) value = D::add(value, group.addends[F::kSplit ? step / 4 : 0]);
  D::store(values + (4 * step + kByte) * kPackedRows, value, D::kRows, false);
}

template <class D, class F>
void decode_group(const PackedFormat& packed, const std::uint8_t* record, int index, float* values) {
  const F format = make_format<F>(packed);
  prefetch_group<F>(record + kAhead + index * F::kGroupBytes);
#pragma GCC unroll 2
  for (int part = 0; part < kParts<D>; part++) {
    Group<D> group;
    format.template read<D>(record, index, part, group);
    float* const out = values + part * D::kRows;
#pragma GCC unroll 8
    for (int step = 0; step < 8; step++) {
      decode_byte<D, F, 0>(group, step, out);
      decode_byte<D, F, 1>(group, step, out);
      decode_byte<D, F, 2>(group, step, out);
      decode_byte<D, F, 3>(group, step, out);
    }
  }
}

template <class D>
DecodeGroup decoder_of(PackedCodes codes) {
  switch (codes) {
    case PackedCodes::q8_0:
      return decode_group<D, PackedQ8_0>;
    case PackedCodes::q5_0:
      return decode_group<D, PackedQ5_0>;
    case PackedCodes::q5_1:
      return decode_group<D, PackedQ5_1>;
    case PackedCodes::q4_0:
      return decode_group<D, PackedQ4_0>;
    case PackedCodes::q4_1:
      return decode_group<D, PackedQ4_1>;
    case PackedCodes::q4_k:
      return decode_group<D, PackedQ4_K>;
    case PackedCodes::q5_k:
      return decode_group<D, PackedQ5_K>;
    case PackedCodes::q6_k:
      return decode_group<D, PackedQ6_K>;
    case PackedCodes::q3_k:
      return decode_group<D, PackedQ3_K>;
    case PackedCodes::q2_k:
      return decode_group<D, PackedQ2_K>;
    case PackedCodes::iq4_nl:
      return decode_group<D, PackedIq4Nl>;
    case PackedCodes::iq4_xs:
      return decode_group<D, PackedIq4Xs>;
    case PackedCodes::mxfp4:
      return decode_group<D, PackedMxfp4>;
    case PackedCodes::affine2:
      return decode_group<D, PackedOpenAffine<2, 0>>;
    case PackedCodes::affine3:
      return decode_group<D, PackedOpenAffine<3, 0>>;
    case PackedCodes::affine4:
      return decode_group<D, PackedOpenAffine<4, 0>>;
    case PackedCodes::affine5:
      return decode_group<D, PackedOpenAffine<5, 0>>;
    case PackedCodes::affine6:
      return decode_group<D, PackedOpenAffine<6, 0>>;
    case PackedCodes::affine8:
      return decode_group<D, PackedOpenAffine<8, 0>>;
    case PackedCodes::dense:
      break;  // has no codes; its tile reads numbers as they are
  }
  return nullptr;
}

// kBands bands side by side, kInputs inputs of each: 16 KiB.
template <int kBands>
inline constexpr std::int64_t kInputs = 256 / kBands;
template <int kBands>
using Panel = float[kBands][kInputs<kBands>][kPackedRows];

// sums[row][band] += panel times kM activation rows, input by input.
template <class D, int kM, int kBands>
void add_tile(const Panel<kBands>& panel, std::int64_t inputs, const float* x, std::int64_t x_stride,
              float* sums) {
  constexpr int kStreams = kBands * kParts<D>;
  const auto sum_at = [&](int s, int i) { return sums + i * kBands * kPackedRows + s * D::kRows; };
  const auto load = [](const float* p) { return D::load_floats(reinterpret_cast<const std::uint8_t*>(p)); };
  typename D::Floats acc[kStreams][kM];
#pragma GCC unroll 8
  for (int s = 0; s < kStreams; s++)
#pragma GCC unroll 8
    for (int i = 0; i < kM; i++) acc[s][i] = load(sum_at(s, i));
  for (std::int64_t k = 0; k < inputs; k++) {
    typename D::Floats x_k[kM];
#pragma GCC unroll 8
    for (int i = 0; i < kM; i++) x_k[i] = D::set1(x[i * x_stride + k]);
#pragma GCC unroll 8
    for (int s = 0; s < kStreams; s++) {
      const auto weights = load(&panel[s / kParts<D>][k][s % kParts<D> * D::kRows]);
#pragma GCC unroll 8
      for (int i = 0; i < kM; i++) acc[s][i] = D::fma(weights, x_k[i], acc[s][i]);
    }
  }
#pragma GCC unroll 8
  for (int s = 0; s < kStreams; s++)
#pragma GCC unroll 8
    for (int i = 0; i < kM; i++) D::store(sum_at(s, i), acc[s][i], D::kRows, false);
}

// `rows` activation rows, the largest tile first.
template <class D>
void add_tiles(const Panel<1>& panel, std::int64_t inputs, const float* x, std::int64_t x_stride,
               std::int64_t rows, float* sums) {
  const auto add = [&]<int kM>() {
    for (; rows >= kM; rows -= kM, x += kM * x_stride, sums += kM * kPackedRows)
      add_tile<D, kM, 1>(panel, inputs, x, x_stride, sums);
  };
  if constexpr (D::kTile == 8) add.template operator()<8>();
  add.template operator()<4>();
  add.template operator()<2>();
  add.template operator()<1>();
}

inline constexpr std::int64_t kFloatRows = 64;  // of a stretch: so often is a decoded panel used

// Activation rows [m, m + rows) times bands [band, band + kBands); rows is 1 where kBands is more.
template <class D, int kBands>
void multiply_floats_at(const QuantMatmulArgs& a, DecodeGroup decode, std::int64_t band, std::int64_t m,
                        std::int64_t rows) {
  alignas(64) Panel<kBands> panel;
  alignas(64) float sums[kBands == 1 ? kFloatRows : 1][kBands][kPackedRows];
  const std::int64_t columns = a.shape.columns, per_record = a.shape.format.group / 32;
  const std::int64_t band_stride = band_bytes(a.shape);
  const std::int64_t records = columns / a.shape.format.group;
  const std::int64_t record_bytes = records == 0 ? 0 : band_stride / records;
  const auto* first = reinterpret_cast<const std::uint8_t*>(a.packed) + band * band_stride;
  for (std::int64_t i = 0; i < rows * kBands * kPackedRows; i++) (&sums[0][0][0])[i] = 0.0f;
  for (std::int64_t k = 0; k < columns; k += kInputs<kBands>) {
    const std::int64_t inputs = columns - k < kInputs<kBands> ? columns - k : kInputs<kBands>;
    for (std::int64_t g = k / 32; g < (k + inputs) / 32; g++)
      for (int b = 0; b < kBands; b++)
        decode(a.shape.format, first + b * band_stride + g / per_record * record_bytes,
               static_cast<int>(g % per_record), panel[b][g * 32 - k]);
    const float* x = a.x.rows + m * columns + k;
    if constexpr (kBands == 1)
      add_tiles<D>(panel, inputs, x, columns, rows, &sums[0][0][0]);
    else
      add_tile<D, 1, kBands>(panel, inputs, x, columns, &sums[0][0][0]);
  }
  for (std::int64_t i = 0; i < rows; i++)
    for (int b = 0; b < kBands; b++)
      for (int part = 0; part < kParts<D>; part++) {
        const std::int64_t row = (band + b) * kPackedRows + part * D::kRows;
        if (row >= a.shape.rows) continue;
        const auto sum = D::load_floats(reinterpret_cast<const std::uint8_t*>(&sums[i][b][part * D::kRows]));
        D::store(a.y + (m + i) * a.y_stride + row, sum, a.shape.rows - row, a.accumulate);
      }
}

template <class D>
Level multiply_floats(const QuantMatmulArgs& a) {
  constexpr int kTogether =
      4;  // bands, so that one activation row has as many chains of sums as fill the pipes
  const DecodeGroup decode = decoder_of<D>(a.shape.format.codes);
  for (std::int64_t m = a.m_begin; m < a.m_end; m += kFloatRows) {
    const std::int64_t rows = a.m_end - m < kFloatRows ? a.m_end - m : kFloatRows;
    std::int64_t band = a.band_begin;
    for (; rows == 1 && band + kTogether <= a.band_end; band += kTogether)
      multiply_floats_at<D, kTogether>(a, decode, band, m, rows);
    for (; band < a.band_end; band++) multiply_floats_at<D, 1>(a, decode, band, m, rows);
  }
  return D::kLevel;
}

}  // namespace
}  // namespace godwit::kernels
