// The product of quantized weights and f32 activations against its definition, on bits: the weights by the
// second way of quant_test_support.h, one fma an input.
#include <algorithm>
#include <iostream>

#include "kernels/quant_matmul.h"
#include "kernels/quant_test_support.h"

namespace godwit::kernels {
namespace {

struct FloatProblem {
  FloatProblem(const FileFormat& format, std::int64_t n, std::int64_t k, std::int64_t m_rows,
               std::uint32_t seed)
      : matrix(format, n, k, seed), shape(matrix.shape), m(m_rows), bands(matrix.packed()), x(m * k, 3) {
    Numbers numbers(seed + 1);
    numbers.fill(x);
  }
  // int8 values are nowhere: reading them would crash.
  QuantMatmulArgs args(Buffer<float>& y) const {
    const Activations only_rows{nullptr, nullptr, nullptr, nullptr, x.data(), ActivationForm::f32};
    return {shape, bands.data(), only_rows, y.data(), shape.rows, 0, m, 0, band_count(shape), false};
  }
  Buffer<float> defined() const {
    const std::vector<float> w = matrix.values();
    Buffer<float> y(m * shape.rows);
    for (std::int64_t i = 0; i < m; i++)
      for (std::int64_t n = 0; n < shape.rows; n++) {
        float sum = 0;
        for (std::int64_t k = 0; k < shape.columns; k++)
          sum = std::fma(w[static_cast<std::size_t>(n * shape.columns + k)], x[i * shape.columns + k], sum);
        y[i * shape.rows + n] = sum;
      }
    return y;
  }

  FileMatrix matrix;
  PackedShape shape;
  std::int64_t m;
  Buffer<std::byte> bands;
  Buffer<float> x;
};

TEST(QuantMatmulF32, every_level_gives_the_bits_of_the_definition_for_tails_and_tiles) {
  for (const FileFormat& format : all_kinds())
    for (const std::int64_t n : {1, 16, 30, 83})
      for (const std::int64_t m : {0, 1, 2, 3, 5, 8, 15}) {
        const FloatProblem p(format, n, m % 2 == 0 ? 256 : 768, m, static_cast<std::uint32_t>(n * 100 + m));
        const Buffer<float> want = p.defined();
        for (const Level level : runnable_levels()) {
          Buffer<float> y(m * n);
          EXPECT_EQ(kernels_for(level).quant_matmul(p.args(y)), level);
          ASSERT_TRUE(same_bits(y, want))
              << level_name(level) << " " << format.name() << " n " << n << " m " << m;
        }
      }
}

TEST(QuantMatmulF32, a_batch_longer_than_a_stretch_has_the_bits_of_its_rows_alone) {
  for (const FileFormat& format : {FileFormat{.blocks = BlockFormat::q6_k},
                                   FileFormat{.bits = 3, .group = 128, .scales = ScaleType::f32}})
    for (const Level level : runnable_levels()) {
      const FloatProblem p(format, 70, 256, 133, 5);
      Buffer<float> whole(p.m * 70), alone(p.m * 70);
      kernels_for(level).quant_matmul(p.args(whole));
      for (std::int64_t m = 0; m < p.m; m++) {
        QuantMatmulArgs one = p.args(alone);
        one.m_begin = m;
        one.m_end = m + 1;
        kernels_for(level).quant_matmul(one);
      }
      EXPECT_TRUE(same_bits(whole, alone)) << level_name(level) << " " << format.name();
    }
}

// What is decoded from every exponent of MXFP4 whose numbers f32 holds: six times its scale is the largest.
TEST(QuantMatmulF32, one_input_of_one_gives_the_weight_itself) {
  FloatProblem p({.blocks = BlockFormat::mxfp4}, 256, 32, 1, 3);
  for (int e = 0; e < 256; e++) p.matrix.codes[e * 17] = static_cast<std::byte>(std::min(e, 252));
  p.matrix.pack(p.bands, 0, band_count(p.shape));
  const std::vector<float> w = p.matrix.values();
  for (const Level level : runnable_levels())
    for (int k = 0; k < 32; k++) {
      for (int i = 0; i < 32; i++) p.x[i] = i == k ? 1.0f : 0.0f;
      Buffer<float> y(256);
      kernels_for(level).quant_matmul(p.args(y));
      for (int n = 0; n < 256; n++)
        ASSERT_EQ(y[n], w[static_cast<std::size_t>(n * 32 + k)]) << level_name(level) << " exponent " << n;
    }
}

// Every format, with widths, rows, strides and parts of the work drawn by lot.
TEST(QuantMatmulF32, random_shapes_and_parts_give_the_bits_of_the_definition) {
  constexpr std::uint32_t kSeed = 20261202;
  std::cout << "seed " << kSeed << "\n";
  Numbers numbers(kSeed);
  for (const FileFormat& format : all_formats())
    for (int round = 0; round < 4; round++) {
      const int n = numbers.integer(1, 90), m = numbers.integer(1, 20);
      const int k = format.packed().group * numbers.integer(1, 512 / format.packed().group);
      const FloatProblem p(format, n, k, m, static_cast<std::uint32_t>(numbers.integer(0, 1 << 20)));
      const std::int64_t stride = n + numbers.integer(0, 5), bands = band_count(p.shape);
      const std::int64_t band = numbers.integer(0, static_cast<int>(bands) - 1);
      const std::int64_t band_end = band + (bands - band + 1) / 2, m_begin = m / 3;
      const Buffer<float> product = p.defined();
      for (const Level level : runnable_levels())
        for (const bool accumulates : {false, true}) {
          Buffer<float> y(m * stride), want(m * stride);
          for (std::int64_t i = 0; i < y.size(); i++) want[i] = y[i] = 0.25f * static_cast<float>(i % 7);
          for (std::int64_t i = m_begin; i < m; i++)
            for (std::int64_t j = band * 16; j < std::min<std::int64_t>(band_end * 16, n); j++)
              want[i * stride + j] = (accumulates ? want[i * stride + j] : 0.0f) + product[i * n + j];
          QuantMatmulArgs args = p.args(y);
          args.y_stride = stride;
          args.m_begin = m_begin;
          args.band_begin = band;
          args.band_end = band_end;
          args.accumulate = accumulates;
          EXPECT_EQ(kernels_for(level).quant_matmul(args), level);
          ASSERT_TRUE(same_bits(y, want))
              << level_name(level) << " " << format.name() << " n " << n << " k " << k << " m " << m;
        }
    }
}

}  // namespace
}  // namespace godwit::kernels
