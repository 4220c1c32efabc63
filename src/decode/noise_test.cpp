#include "decode/noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "decode/portable_math.h"

namespace godwit::decode {
namespace {

using Words = std::array<std::uint32_t, 4>;

TEST(Noise, philox_gives_the_published_test_vectors) {
  // kat_vectors of the Random123 distribution, lines "philox4x32 10".
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Noise, every_part_of_the_key_matters_and_nothing_else_does) {
  const Noise base(42, 1, 7);
  EXPECT_EQ(base.token_bits(3), Noise(42, 1, 7).token_bits(3));
  EXPECT_NE(base.token_bits(3), Noise(43, 1, 7).token_bits(3));
  EXPECT_NE(base.token_bits(3), Noise(42 + (std::uint64_t{1} << 32), 1, 7).token_bits(3));
  EXPECT_NE(base.token_bits(3), Noise(42, 2, 7).token_bits(3));
  EXPECT_NE(base.token_bits(3), Noise(42, 1, 8).token_bits(3));
  EXPECT_NE(base.token_bits(3), base.token_bits(2));
  EXPECT_NE(base.token_bits(3), base.token_bits(4));
  EXPECT_NE(base.coin(), Noise::uniform(base.token_bits(0)));  // streams differ
}

TEST(Noise, uniform_lies_strictly_between_zero_and_one_at_both_ends) {
  const std::uint64_t last = (std::uint64_t{1} << 52) - 1;
  EXPECT_GT(Noise::uniform(0), 0.0);
  EXPECT_LT(Noise::uniform(last), 1.0);
  EXPECT_TRUE(std::isfinite(Noise::gumbel(0)));
  EXPECT_TRUE(std::isfinite(Noise::gumbel(last)));
}

TEST(Noise, the_cheap_bound_is_never_below_the_gumbel_value) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 200000; ++i) {
    // All magnitudes of u and of 1 - u: shift away a random number of leading bits, then mirror half of them.
    std::uint64_t bits = (random() >> 12) >> (random() % 52);
    if (i % 2) bits = (std::uint64_t{1} << 52) - 1 - bits;
    ASSERT_GE(Noise::gumbel_bound(bits), Noise::gumbel(bits)) << bits;
  }
}

TEST(PortableMath, agrees_with_the_c_library_to_two_units_in_the_last_place) {
  const auto ulps = [](double a, double b) {
    const double unit = std::nextafter(std::fabs(b), INFINITY) - std::fabs(b);
    return std::fabs(a - b) / unit;
  };
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> exponent(-700, 700), magnitude(-300, 300), near_one(-1e-3, 1e-3);
  for (int i = 0; i < 100000; ++i) {
    const double x = exponent(random);
    ASSERT_LE(ulps(portable_exp(x), std::exp(x)), 2) << x;
    const double y = i % 2 ? std::pow(10.0, magnitude(random)) : 1 + near_one(random);
    ASSERT_LE(ulps(portable_log(y), std::log(y)), 2) << y;
  }
  EXPECT_EQ(portable_exp(0), 1.0);
  EXPECT_EQ(portable_exp(-800), 0.0);
  EXPECT_EQ(portable_exp(-INFINITY), 0.0);
  EXPECT_EQ(portable_exp(710), INFINITY);
  EXPECT_EQ(portable_log(1), 0.0);
  EXPECT_NEAR(portable_exp(-744), std::exp(-744), 1e-323);  // subnormal: one unit is 5e-324
}

}  // namespace
}  // namespace godwit::decode
