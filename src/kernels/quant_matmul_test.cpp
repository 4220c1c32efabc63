// Packed weights and the quantized matmul. The oracle of values is the GGUF block decoder and sums in double.
#include "kernels/quant_matmul.h"

#include "base/error.h"
#include "kernels/half.h"
#include "kernels/kernel_test_support.h"

namespace godwit::kernels {
namespace {

constexpr BlockFormat kFormats[] = {BlockFormat::q8_0, BlockFormat::q5_0, BlockFormat::q4_1,
                                    BlockFormat::q4_0, BlockFormat::q4_k, BlockFormat::q6_k};

void put_half(Buffer<std::byte>& out, std::int64_t at, float value) {
  const std::uint16_t half = float_to_f16(value);
  std::memcpy(out.data() + at, &half, 2);
}

// Random blocks of a format: any bit pattern as codes and scales, sane f16 factors.
Buffer<std::byte> random_blocks(const PackedShape& shape, std::uint32_t seed) {
  Numbers numbers(seed);
  const BlockSize block = block_size(shape.format);
  Buffer<std::byte> out(shape.rows * shape.columns / block.elements * block.bytes);
  for (std::int64_t i = 0; i < out.size(); i++) out[i] = numbers.byte();
  const bool is_q6 = shape.format == BlockFormat::q6_k;
  const bool has_second = shape.format == BlockFormat::q4_1 || shape.format == BlockFormat::q4_k;
  for (std::int64_t at = 0; at < out.size(); at += block.bytes) {
    put_half(out, at + (is_q6 ? 208 : 0), numbers.normal(0.01f));
    if (has_second) put_half(out, at + 2, numbers.normal(0.05f));
  }
  return out;
}

Buffer<std::byte> packed(const PackedShape& shape, const Buffer<std::byte>& gguf) {
  Buffer<std::byte> out(packed_bytes(shape), 1);
  pack_bands(shape, gguf.data(), out.data(), 0, band_count(shape));
  return out;
}

std::vector<float> decoded(const PackedShape& shape, const Buffer<std::byte>& gguf) {
  std::vector<float> out(static_cast<std::size_t>(shape.rows * shape.columns));
  dequant_blocks(shape.format, gguf.data(),
                 static_cast<std::size_t>(shape.rows * shape.columns / block_size(shape.format).elements),
                 out.data());
  return out;
}

TEST(PackedWeights, keep_every_value_and_the_size_of_the_file) {
  for (const BlockFormat format : kFormats)
    for (const std::int64_t rows : {1, 16, 19}) {
      const PackedShape shape{format, rows, 768};
      const Buffer<std::byte> gguf = random_blocks(shape, static_cast<std::uint32_t>(rows));
      const Buffer<std::byte> bands = packed(shape, gguf);
      EXPECT_EQ(bands.size(), gguf.size() / rows * ((rows + 15) / 16 * 16));
      const std::vector<float> want = decoded(shape, gguf);
      for (std::int64_t row = 0; row < rows; row++) {
        Buffer<float> line(shape.columns);
        dequant_packed_row(shape, bands.data(), row, line.data());
        for (std::int64_t k = 0; k < shape.columns; k++)
          ASSERT_TRUE(same_bits(line[k], want[static_cast<std::size_t>(row * shape.columns + k)]))
              << static_cast<int>(format) << " row " << row << " column " << k;
      }
    }
}

TEST(PackedWeights, may_be_packed_band_by_band) {
  const PackedShape shape{BlockFormat::q5_0, 50, 64};
  const Buffer<std::byte> gguf = random_blocks(shape, 1), whole = packed(shape, gguf);
  Buffer<std::byte> parts(packed_bytes(shape));
  for (const std::int64_t band : {2, 0, 3, 1}) pack_bands(shape, gguf.data(), parts.data(), band, band + 1);
  EXPECT_TRUE(same_bytes(parts, whole));
}

TEST(PackedWeights, refuse_a_format_or_a_width_without_a_layout) {
  std::byte none{};
  EXPECT_FALSE(has_packed_layout(BlockFormat::iq4_xs));
  EXPECT_THROW(pack_bands({BlockFormat::iq4_xs, 1, 256}, &none, &none, 0, 0), Error);
  EXPECT_THROW(pack_bands({BlockFormat::q8_0, 1, 33}, &none, &none, 0, 0), Error);
  EXPECT_THROW(pack_bands({BlockFormat::q4_k, 1, 32}, &none, &none, 0, 0), Error);
}

// A product ready to run: weights, quantized activations, and a place for y.
struct Problem {
  Problem(BlockFormat format, std::int64_t n, std::int64_t k, std::int64_t m_rows, std::uint32_t seed)
      : shape{format, n, k},
        m(m_rows),
        gguf(random_blocks(shape, seed)),
        bands(packed(shape, gguf)),
        values(m * k, 1),
        scales(m * k / 32),
        sums(m * k / 32),
        half_sums(m * k / 16) {
    Numbers numbers(seed + 1);
    Buffer<float> x(m * k);
    numbers.fill(x);
    kernels_for(Level::scalar)
        .quantize_rows({x.data(), m, k, k, values.data(), scales.data(), sums.data(), half_sums.data()});
  }
  QuantMatmulArgs args(Buffer<float>& y) const {
    const Activations x{values.data(), scales.data(), sums.data(), half_sums.data()};
    return {shape, bands.data(), x, y.data(), shape.rows, 0, m, 0, band_count(shape), false};
  }
  Buffer<float> run(Level level) const {
    Buffer<float> y(m * shape.rows);
    EXPECT_EQ(kernels_for(level).quant_matmul(args(y)), level);
    return y;
  }

  PackedShape shape;
  std::int64_t m;
  Buffer<std::byte> gguf, bands;
  Buffer<std::int8_t> values;
  Buffer<float> scales, sums;
  Buffer<std::int32_t> half_sums;
};

TEST(QuantMatmul, is_close_to_the_sum_in_double) {
  for (const BlockFormat format : kFormats) {
    const Problem p(format, 21, 768, 3, 7);
    const Buffer<float> y = p.run(Level::scalar);
    const std::vector<float> w = decoded(p.shape, p.gguf);
    for (std::int64_t m = 0; m < p.m; m++)
      for (std::int64_t n = 0; n < p.shape.rows; n++) {
        double exact = 0, size = 0;
        for (std::int64_t k = 0; k < 768; k++) {
          const std::int64_t at = m * 768 + k;
          const double x = p.values[at] * double{p.scales[at / 32]};
          const double term = x * w[static_cast<std::size_t>(n * 768 + k)];
          exact += term;
          size += std::abs(term);
        }
        // Formats with a minimum add two large terms of opposite sign per group, each up to 16 times the
        // result's.
        const double growth = format == BlockFormat::q4_1 || format == BlockFormat::q4_k ? 16 : 1;
        // 24 groups, at most two fma each, three roundings in the factors and one in the decoder's value.
        EXPECT_NEAR(y[m * p.shape.rows + n], exact, growth * size * (2 * 24 + 4) * kUnit)
            << static_cast<int>(format);
      }
  }
}

TEST(QuantMatmul, every_level_gives_the_scalar_bits_for_tails_and_tiles) {
  for (const BlockFormat format : kFormats)
    for (const std::int64_t n : {1, 16, 30, 83})
      for (const std::int64_t m : {0, 1, 2, 3, 5, 8, 15}) {
        const Problem p(format, n, m % 2 == 0 ? 256 : 768, m, static_cast<std::uint32_t>(n * 100 + m));
        const Buffer<float> want = p.run(Level::scalar);
        for (const Level level : runnable_levels())
          ASSERT_TRUE(same_bits(p.run(level), want))
              << level_name(level) << " format " << static_cast<int>(format) << " n " << n << " m " << m;
      }
}

// Codes and inputs at their ends: sums in 16 bits must not saturate.
TEST(QuantMatmul, extreme_codes_do_not_overflow_at_any_level) {
  for (const BlockFormat format : kFormats)
    for (const std::byte pattern : {std::byte{0xff}, std::byte{0x80}, std::byte{0x7f}, std::byte{0x00}})
      for (const int x : {127, -127}) {
        Problem p(format, 16, 256, 2, 3);
        const BlockSize block = block_size(format);
        for (std::int64_t i = 0; i < p.gguf.size(); i++) p.gguf[i] = pattern;
        for (std::int64_t at = 0; at < p.gguf.size(); at += block.bytes) {
          put_half(p.gguf, at + (format == BlockFormat::q6_k ? 208 : 0), 1.0f);
          if (format == BlockFormat::q4_1 || format == BlockFormat::q4_k) put_half(p.gguf, at + 2, 1.0f);
        }
        pack_bands(p.shape, p.gguf.data(), p.bands.data(), 0, 1);
        const std::vector<float> w = decoded(p.shape, p.gguf);
        for (std::int64_t i = 0; i < p.values.size(); i++) p.values[i] = static_cast<std::int8_t>(x);
        for (std::int64_t g = 0; g < p.scales.size(); g++) {
          p.scales[g] = 1.0f;
          p.sums[g] = static_cast<float>(32 * x);
          p.half_sums[2 * g] = p.half_sums[2 * g + 1] = 16 * x;
        }
        double exact = 0;
        for (int k = 0; k < 256; k++) exact += double{w[static_cast<std::size_t>(k)]} * x;
        for (const Level level : runnable_levels()) {
          const Buffer<float> y = p.run(level);
          // Q6_K's products reach 2^27 and round; all other sums are integers below 2^24, hence exact.
          EXPECT_NEAR(y[0], exact, format == BlockFormat::q6_k ? std::abs(exact) * 32 * kUnit : 0.0)
              << level_name(level) << " " << static_cast<int>(format);
        }
      }
}

TEST(QuantMatmul, a_row_has_the_same_bits_alone_and_in_any_batch) {
  for (const BlockFormat format : kFormats)
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
  for (const Level level : runnable_levels()) {
    if (level == Level::scalar) continue;                  // has no stretches
    const Problem p(BlockFormat::q4_1, 16, 8192, 133, 6);  // 64 rows fit a stretch
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
  for (const BlockFormat format : kFormats)
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

TEST(QuantMatmul, accumulating_adds_the_product_once_to_what_was_there) {
  for (const Level level : runnable_levels()) {
    const Problem p(BlockFormat::q8_0, 21, 64, 3, 9);
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
    Problem p(BlockFormat::q4_1, 16, 64, 2, 11);
    Buffer<float> x(2 * 64);
    x[64 + 40] = std::nanf("");
    kernels_for(level).quantize_rows(
        {x.data(), 2, 64, 64, p.values.data(), p.scales.data(), p.sums.data(), p.half_sums.data()});
    const Buffer<float> y = p.run(level);
    for (int n = 0; n < 16; n++) {
      EXPECT_FALSE(std::isnan(y[n]));
      EXPECT_TRUE(std::isnan(y[16 + n])) << level_name(level);
    }
  }
}

}  // namespace
}  // namespace godwit::kernels
