// The quantized matmul. The oracle of values is that of the packed weights, and sums in double.
#include "kernels/quant_matmul.h"

#include <algorithm>
#include <iostream>

#include "kernels/quant_test_support.h"

namespace godwit::kernels {
namespace {

// A product ready to run: weights, quantized activations, and a place for y.
struct Problem {
  Problem(const FileFormat& format, std::int64_t n, std::int64_t k, std::int64_t m_rows, std::uint32_t seed)
      : matrix(format, n, k, seed),
        shape(matrix.shape),
        m(m_rows),
        bands(matrix.packed()),
        x(m * k, 3),
        values(m * k, 1),
        scales(m * k / 16),
        sums(m * k / 32),
        code_sums(m * k / 16) {
    Numbers numbers(seed + 1);
    numbers.fill(x);
    kernels_for(Level::scalar)
        .quantize_rows({x.data(), m, k, k, values.data(), scales.data(), sums.data(), code_sums.data()});
  }
  QuantMatmulArgs args(Buffer<float>& y) const {
    const Activations all{values.data(), scales.data(), sums.data(), code_sums.data(), x.data()};
    return {shape, bands.data(), all, y.data(), shape.rows, 0, m, 0, band_count(shape), false};
  }
  Buffer<float> run(Level level) const {
    Buffer<float> y(m * shape.rows);
    EXPECT_EQ(kernels_for(level).quant_matmul(args(y)), level);
    return y;
  }

  FileMatrix matrix;
  PackedShape shape;
  std::int64_t m;
  Buffer<std::byte> bands;
  Buffer<float> x;
  Buffer<std::int8_t> values;
  Buffer<float> scales, sums;
  Buffer<std::int32_t> code_sums;
};

TEST(QuantMatmul, is_close_to_the_sum_in_double) {
  for (const FileFormat& format : all_kinds()) {
    const Problem p(format, 21, 768, 3, 7);
    const Buffer<float> y = p.run(Level::scalar);
    const std::vector<float> w = p.matrix.values();
    for (std::int64_t m = 0; m < p.m; m++)
      for (std::int64_t n = 0; n < p.shape.rows; n++) {
        double exact = 0, size = 0;
        for (std::int64_t k = 0; k < 768; k++) {
          const std::int64_t at = m * 768 + k;
          const double x = format.is_dense ? double{p.x[at]} : p.values[at] * double{p.scales[at / 16]};
          const double term = x * w[static_cast<std::size_t>(n * 768 + k)];
          exact += term;
          size += std::abs(term);
        }
        // Formats with a minimum add two large terms of opposite sign per group, each up to as many
        // times the result's as there are codes.
        const double growth = format.has_minimum() ? format.codes() : 1;
        // 24 groups, at most two fma each, two roundings within a group, three in the factors and one in the
        // decoder's value; of a dense row one fma for each input.
        const double steps = format.is_dense ? 768 : 2 * 24 + 6;
        EXPECT_NEAR(y[m * p.shape.rows + n], exact, growth * size * steps * kUnit) << format.name();
      }
  }
}

TEST(QuantMatmul, every_level_gives_the_scalar_bits_for_tails_and_tiles) {
  for (const FileFormat& format : all_kinds())
    for (const std::int64_t n : {1, 16, 30, 83})
      for (const std::int64_t m : {0, 1, 2, 3, 5, 8, 15}) {
        const Problem p(format, n, m % 2 == 0 ? 256 : 768, m, static_cast<std::uint32_t>(n * 100 + m));
        const Buffer<float> want = p.run(Level::scalar);
        for (const Level level : runnable_levels())
          ASSERT_TRUE(same_bits(p.run(level), want))
              << level_name(level) << " " << format.name() << " n " << n << " m " << m;
      }
}

// Codes and inputs at their ends: sums in 16 bits must not saturate.
TEST(QuantMatmul, extreme_codes_do_not_overflow_at_any_level) {
  for (const FileFormat& format : all_kinds()) {
    if (format.is_dense) continue;  // no codes
    for (const std::byte pattern : {std::byte{0xff}, std::byte{0x80}, std::byte{0x7f}, std::byte{0x00}})
      for (const int x : {127, -127}) {
        Problem p(format, 16, 256, 2, 3);
        for (std::int64_t i = 0; i < p.matrix.codes.size(); i++) p.matrix.codes[i] = pattern;
        p.matrix.set_factors([] { return 1.0f; }, [] { return 1.0f; });
        p.matrix.pack(p.bands, 0, 1);
        const std::vector<float> w = p.matrix.values();
        for (std::int64_t i = 0; i < p.values.size(); i++) p.values[i] = static_cast<std::int8_t>(x);
        for (std::int64_t g = 0; g < p.scales.size(); g++) {
          p.scales[g] = 1.0f;
          p.sums[g / 2] = static_cast<float>(32 * x);
          p.code_sums[g] = 16 * x;
        }
        double exact = 0;
        for (int k = 0; k < 256; k++) exact += double{w[static_cast<std::size_t>(k)]} * x;
        for (const Level level : runnable_levels()) {
          const Buffer<float> y = p.run(level);
          // Q6_K's products reach 2^27 and round; all other sums are multiples of 32 below 2^29, hence exact.
          EXPECT_NEAR(y[0], exact,
                      format.packed().codes == PackedCodes::q6_k ? std::abs(exact) * 32 * kUnit : 0.0)
              << level_name(level) << " " << format.name();
        }
      }
  }
}

TEST(QuantMatmul, a_row_has_the_same_bits_alone_and_in_any_batch) {
  for (const FileFormat& format : all_kinds())
    for (const Level level : runnable_levels()) {
      const bool is_scalar = level == Level::scalar;
      const Problem p(format, 70, 256, is_scalar ? 19 : 64, 5);
      Buffer<float> alone(p.m * 70);
      for (std::int64_t m = 0; m < p.m; m++) {
        QuantMatmulArgs one = p.args(alone);
        one.m_begin = m;
        one.m_end = m + 1;
        kernels_for(level).quant_matmul(one);
      }
      for (std::int64_t batch = 2; batch <= p.m; batch += is_scalar ? 7 : 1) {
        Buffer<float> together(p.m * 70);
        QuantMatmulArgs some = p.args(together);
        some.m_end = batch;
        kernels_for(level).quant_matmul(some);
        ASSERT_EQ(std::memcmp(together.data(), alone.data(), static_cast<std::size_t>(batch * 70) * 4), 0)
            << level_name(level) << " batch " << batch;
      }
    }
}

TEST(QuantMatmul, a_long_batch_is_cut_into_stretches_without_a_trace) {
  for (const Level level : runnable_levels())
    for (const FileFormat& format :
         {FileFormat{.blocks = BlockFormat::q4_1}, FileFormat{.scales = ScaleType::bf16, .is_dense = true}}) {
      if (level == Level::scalar) continue;       // has no stretches
      const Problem p(format, 16, 8192, 133, 6);  // 64 rows fit a stretch, 16 of dense inputs
      const Buffer<float> whole = p.run(level);
      Buffer<float> alone(p.m * 16);
      for (std::int64_t m = 0; m < p.m; m++) {
        QuantMatmulArgs one = p.args(alone);
        one.m_begin = m;
        one.m_end = m + 1;
        kernels_for(level).quant_matmul(one);
      }
      EXPECT_TRUE(same_bits(whole, alone)) << level_name(level);
    }
}

TEST(QuantMatmul, any_split_of_the_output_gives_the_same_bits) {
  for (const FileFormat& format : all_kinds())
    for (const Level level : runnable_levels()) {
      const Problem p(format, 150, 256, 5, 8);
      const Buffer<float> whole = p.run(level);
      for (const std::int64_t step : {1, 3, 7}) {
        Buffer<float> parts(p.m * 150);
        for (std::int64_t band = 0; band < band_count(p.shape); band += step)
          for (std::int64_t m = 0; m < p.m; m += 2) {
            QuantMatmulArgs part = p.args(parts);
            part.band_begin = band;
            part.band_end = std::min(band + step, band_count(p.shape));
            part.m_begin = m;
            part.m_end = std::min<std::int64_t>(m + 2, p.m);
            kernels_for(level).quant_matmul(part);
          }
        ASSERT_TRUE(same_bits(parts, whole)) << level_name(level) << " step " << step;
      }
    }
}

// Every format, with widths, rows, strides and parts of the work drawn by lot.
TEST(QuantMatmul, random_shapes_and_parts_give_the_scalar_bits) {
  constexpr std::uint32_t kSeed = 20261201;
  std::cout << "seed " << kSeed << "\n";
  Numbers numbers(kSeed);
  for (const FileFormat& format : all_formats())
    for (int round = 0; round < 6; round++) {
      const int n = numbers.integer(1, 90), m = numbers.integer(1, 20);
      const int k = format.packed().group * numbers.integer(1, 512 / format.packed().group);
      const Problem p(format, n, k, m, static_cast<std::uint32_t>(numbers.integer(0, 1 << 20)));
      const std::int64_t stride = n + numbers.integer(0, 5), bands = band_count(p.shape);
      const std::int64_t band = numbers.integer(0, static_cast<int>(bands) - 1);
      const auto run = [&](Level level, bool accumulates) {
        Buffer<float> y(m * stride);
        for (std::int64_t i = 0; i < y.size(); i++) y[i] = 0.25f * static_cast<float>(i % 7);
        QuantMatmulArgs args = p.args(y);
        args.y_stride = stride;
        args.m_begin = m / 3;
        args.band_begin = band;
        args.band_end = band + (bands - band + 1) / 2;
        args.accumulate = accumulates;
        EXPECT_EQ(kernels_for(level).quant_matmul(args), level);
        return y;
      };
      for (const Level level : runnable_levels())
        for (const bool accumulates : {false, true})
          ASSERT_TRUE(same_bits(run(level, accumulates), run(Level::scalar, accumulates)))
              << level_name(level) << " " << format.name() << " n " << n << " k " << k << " m " << m;
    }
}

TEST(QuantMatmul, accumulating_adds_the_product_once_to_what_was_there) {
  for (const Level level : runnable_levels()) {
    const Problem p({.blocks = BlockFormat::q8_0}, 21, 64, 3, 9);
    const Buffer<float> product = p.run(level);
    Buffer<float> y(p.m * 21), want(p.m * 21);
    Numbers numbers(10);
    numbers.fill(y);
    for (std::int64_t i = 0; i < y.size(); i++) want[i] = y[i] + product[i];
    QuantMatmulArgs args = p.args(y);
    args.accumulate = true;
    kernels_for(level).quant_matmul(args);
    EXPECT_TRUE(same_bits(y, want)) << level_name(level);
  }
}

TEST(QuantMatmul, a_nan_activation_reaches_every_output_of_its_row_only) {
  for (const Level level : runnable_levels()) {
    Problem p({.blocks = BlockFormat::q4_1}, 16, 64, 2, 11);
    Buffer<float> x(2 * 64);
    x[64 + 40] = std::nanf("");
    kernels_for(level).quantize_rows(
        {x.data(), 2, 64, 64, p.values.data(), p.scales.data(), p.sums.data(), p.code_sums.data()});
    const Buffer<float> y = p.run(level);
    for (int n = 0; n < 16; n++) {
      EXPECT_FALSE(std::isnan(y[n]));
      EXPECT_TRUE(std::isnan(y[16 + n])) << level_name(level);
    }
  }
}

}  // namespace
}  // namespace godwit::kernels
