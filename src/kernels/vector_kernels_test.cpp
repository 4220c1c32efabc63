// Norm, rope, gate, add, argmax and activation quantization: against double, and every level against scalar
// on bits.
#include "kernels/kernel_test_support.h"

namespace godwit::kernels {
namespace {

constexpr std::int64_t kLengths[] = {0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65, 576, 1000};
constexpr std::int64_t kOffsets[] = {0, 1, 3};

const KernelTable& scalar_kernels() { return kernels_for(Level::scalar); }

TEST(RmsNorm, is_close_to_double_and_equal_at_every_level) {
  for (const std::int64_t n : kLengths)
    for (const std::int64_t offset : kOffsets) {
      Numbers numbers(static_cast<std::uint32_t>(n * 8 + offset));
      Buffer<float> x(2 * n, offset), weight(n, offset), want(2 * n, offset);
      numbers.fill(x, 3.0f);
      numbers.fill(weight);
      scalar_kernels().rms_norm({x.data(), weight.data(), want.data(), 2, n, n, n, 1e-5f});
      for (std::int64_t i = 0; i < 2 * n; i++) {
        double squares = 0;
        for (std::int64_t k = 0; k < n; k++) squares += double{x[i / n * n + k]} * x[i / n * n + k];
        const double exact = x[i] / std::sqrt(squares / static_cast<double>(n) + 1e-5f) * weight[i % n];
        // A lane sums n/16 squares, the tree adds 4 roundings; the root halves them; 6 more operations
        // follow.
        EXPECT_NEAR(want[i], exact, std::abs(exact) * (static_cast<double>(n) / 32 + 10) * kUnit) << n;
      }
      for (const Level level : runnable_levels()) {
        Buffer<float> y(2 * n, offset);
        kernels_for(level).rms_norm({x.data(), weight.data(), y.data(), 2, n, n, n, 1e-5f});
        EXPECT_TRUE(same_bits(y, want)) << level_name(level) << " n " << n;
        kernels_for(level).rms_norm({x.data(), weight.data(), x.data(), 0, n, n, n, 1e-5f});
      }
    }
}

double exact_gate(Activation activation, double g) {
  if (activation == Activation::silu) return g / (1 + std::exp(-g));
  if (activation == Activation::sigmoid) return 1 / (1 + std::exp(-g));
  // (1 + tanh(z)) / 2 without its cancellation for negative z.
  return g / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g)));
}

TEST(Gated, is_close_to_double_and_equal_at_every_level) {
  for (const Activation activation : {Activation::silu, Activation::gelu_tanh, Activation::sigmoid})
    for (const std::int64_t n : kLengths) {
      Numbers numbers(static_cast<std::uint32_t>(n));
      Buffer<float> gate(n, 1), up(n, 3), want(n);
      numbers.fill(gate, 4.0f);
      numbers.fill(up);
      scalar_kernels().gated({activation, gate.data(), up.data(), want.data(), 1, n, n, n, n});
      for (std::int64_t i = 0; i < n; i++) {
        const double exact = exact_gate(activation, gate[i]) * up[i];
        // exp is good to 2 units; its argument carries at most 4 units of its own size (gelu's polynomial),
        // which the exponential turns into |z| times as many; 4 operations follow.
        const double z =
            activation == Activation::gelu_tanh ? std::abs(1.6 * gate[i] * (1 + 0.0447 * gate[i] * gate[i])) : 0;
        EXPECT_NEAR(want[i], exact, std::abs(exact) * (8 + 5 * z) * kUnit + 1e-36) << gate[i];
      }
      for (const Level level : runnable_levels()) {
        Buffer<float> y(n);
        kernels_for(level).gated({activation, gate.data(), up.data(), y.data(), 1, n, n, n, n});
        EXPECT_TRUE(same_bits(y, want)) << level_name(level) << " n " << n;
      }
    }
}

TEST(Gated, saturates_without_turning_into_nan) {
  for (const Level level : runnable_levels()) {
    Buffer<float> gate(4), up(4), y(4);
    const float values[] = {-1e4f, 1e4f, -3e38f, 3e38f};
    for (int i = 0; i < 4; i++) gate[i] = values[i], up[i] = 1.0f;
    kernels_for(level).gated({Activation::silu, gate.data(), up.data(), y.data(), 1, 4, 4, 4, 4});
    EXPECT_EQ(y[0], 0.0f);
    EXPECT_EQ(y[1], 1e4f);
    EXPECT_EQ(y[2], 0.0f);
    EXPECT_EQ(y[3], 3e38f);
    kernels_for(level).gated({Activation::sigmoid, gate.data(), up.data(), y.data(), 1, 4, 4, 4, 4});
    EXPECT_EQ(y[0], 0.0f);
    EXPECT_EQ(y[1], 1.0f);
    EXPECT_EQ(y[2], 0.0f);
    EXPECT_EQ(y[3], 1.0f);
  }
}

TEST(Add, is_the_f32_sum_at_every_level) {
  for (const std::int64_t n : kLengths) {
    Numbers numbers(static_cast<std::uint32_t>(n));
    Buffer<float> a(n, 1), b(n, 2), want(n);
    numbers.fill(a);
    numbers.fill(b, 1e-3f);
    for (std::int64_t i = 0; i < n; i++) want[i] = a[i] + b[i];
    for (const Level level : runnable_levels()) {
      Buffer<float> y(n, 3);
      kernels_for(level).add({a.data(), b.data(), y.data(), n});
      EXPECT_TRUE(same_bits(y, want)) << level_name(level);
    }
  }
}

std::int64_t argmax_of(Level level, const Buffer<float>& x) {
  std::int64_t index = -7;
  kernels_for(level).argmax({x.data(), x.size(), &index});
  return index;
}

TEST(Argmax, is_the_first_of_the_largest_wherever_it_lies) {
  Numbers numbers(5);
  for (const Level level : runnable_levels()) {
    for (const std::int64_t n : {1, 2, 15, 16, 17, 64, 100, 4095, 4097, 9000})
      for (int round = 0; round < 20; round++) {
        Buffer<float> x(n, 1);
        numbers.fill(x);
        const std::int64_t first = numbers.integer(0, static_cast<int>(n) - 1);
        const std::int64_t again = numbers.integer(static_cast<int>(first), static_cast<int>(n) - 1);
        x[first] = x[again] = 50.0f;
        if (first > 0) x[first - 1] = std::nanf("");
        EXPECT_EQ(argmax_of(level, x), first) << level_name(level) << " n " << n;
      }
    EXPECT_EQ(argmax_of(level, Buffer<float>(0)), -1);
    Buffer<float> lowest(3), nans(3), negative(20);
    for (int i = 0; i < 3; i++) lowest[i] = -std::numeric_limits<float>::infinity(), nans[i] = std::nanf("");
    for (int i = 0; i < 20; i++) negative[i] = -1.0f - static_cast<float>(i % 7 == 3 ? 0 : 1);
    EXPECT_EQ(argmax_of(level, lowest), 0);
    EXPECT_EQ(argmax_of(level, nans), -1);
    EXPECT_EQ(argmax_of(level, negative), 3);
  }
}

struct RopeCase {
  std::int64_t head_dim, dims;
};

TEST(Rope, table_is_the_rounded_cosine_and_sine) {
  const std::int32_t positions[] = {0, 1, 2, 511, 8191, 131071, 1048575};
  const double frequencies[] = {1.0, 0.749894209332456, 0.01, 1e-4, 0.0};
  float cosines[35], sines[35];
  rope_table({positions, frequencies, cosines, sines, 7, 5});
  for (int t = 0; t < 7; t++)
    for (int i = 0; i < 5; i++) {
      const double angle = positions[t] * frequencies[i];
      // Both are good to 1e-15, so they round to the same f32 except next to a tie.
      EXPECT_NEAR(cosines[t * 5 + i], std::cos(angle), std::abs(std::cos(angle)) * kUnit + 2e-15) << angle;
      EXPECT_NEAR(sines[t * 5 + i], std::sin(angle), std::abs(std::sin(angle)) * kUnit + 2e-15) << angle;
    }
  EXPECT_EQ(cosines[4], 1.0f);
  EXPECT_EQ(sines[4], 0.0f);
}

TEST(Rope, rotates_the_halves_and_leaves_the_rest_at_every_level) {
  for (const RopeCase c : {RopeCase{64, 64}, {80, 64}, {16, 6}, {48, 34}, {64, 0}}) {
    Numbers numbers(static_cast<std::uint32_t>(c.head_dim + c.dims));
    const std::int64_t tokens = 3, heads = 2, half = c.dims / 2, stride = heads * c.head_dim + 5;
    Buffer<float> x(tokens * stride, 1), cosines(tokens * half), sines(tokens * half);
    numbers.fill(x);
    numbers.fill(cosines);
    numbers.fill(sines);
    const auto rotated = [&](Level level) {
      Buffer<float> y(tokens * stride, 1);
      std::memcpy(y.data(), x.data(), sizeof(float) * static_cast<std::size_t>(x.size()));
      kernels_for(level).rope(
          {y.data(), cosines.data(), sines.data(), tokens, heads, c.head_dim, c.dims, stride});
      return y;
    };
    const Buffer<float> want = rotated(Level::scalar);
    for (std::int64_t i = 0; i < x.size(); i++) {
      const std::int64_t token = i / stride, d = i % stride % c.head_dim;
      if (i % stride >= heads * c.head_dim || d >= c.dims) {
        EXPECT_EQ(want[i], x[i]);
        continue;
      }
      const double cosine = cosines[token * half + d % half], sine = sines[token * half + d % half];
      const double other = d < half ? -x[i + half] : x[i - half];
      const double exact = x[i] * cosine + other * sine;  // one product and one fma round
      EXPECT_NEAR(want[i], exact, 2 * kUnit * (std::abs(x[i] * cosine) + std::abs(other * sine)));
    }
    for (const Level level : runnable_levels())
      EXPECT_TRUE(same_bits(rotated(level), want)) << level_name(level);
  }
}

struct Quantized {
  Quantized(Level level, const Buffer<float>& x, std::int64_t rows, std::int64_t n)
      : values(rows * n, 1), scales(rows * n / 16), sums(rows * n / 32), code_sums(rows * n / 16) {
    kernels_for(level).quantize_rows(
        {x.data(), rows, n, n, values.data(), scales.data(), sums.data(), code_sums.data()});
  }
  Buffer<std::int8_t> values;
  Buffer<float> scales, sums;
  Buffer<std::int32_t> code_sums;
};

TEST(QuantizeRows, rounds_to_the_nearest_step_and_sums_exactly) {
  Numbers numbers(11);
  Buffer<float> x(3 * 96, 1);
  numbers.fill(x, 2.0f);
  for (int i = 0; i < 32; i++) x[i] = 0.0f;
  const Quantized q(Level::scalar, x, 3, 96);
  for (int g = 0; g < 18; g++) {
    float largest = 0;
    for (int k = 0; k < 16; k++) largest = std::max(largest, std::abs(x[g * 16 + k]));
    EXPECT_EQ(q.scales[g], largest / 127.0f);
    int sum = 0, peak = 0;
    for (int k = 0; k < 16; k++) {
      const int value = q.values[g * 16 + k];
      // Half a step, plus two roundings of a product of at most 127.
      EXPECT_LE(std::abs(value * double{q.scales[g]} - x[g * 16 + k]), q.scales[g] * (0.5 + 127 * 3 * kUnit));
      sum += value;
      peak = std::max(peak, std::abs(value));
    }
    EXPECT_EQ(peak, g < 2 ? 0 : 127);
    EXPECT_EQ(q.code_sums[g], sum);
  }
  for (int pair = 0; pair < 9; pair++) {
    const auto part = [&](int g) { return q.scales[g] * static_cast<float>(q.code_sums[g]); };
    EXPECT_EQ(q.sums[pair], part(2 * pair) + part(2 * pair + 1));
  }
}

TEST(QuantizeRows, shows_what_is_not_finite_and_zeroes_what_is_tiny) {
  for (const Level level : runnable_levels())
    for (const float odd : {std::nanf(""), HUGE_VALF, -HUGE_VALF})
      for (int at = 0; at < 16; at += 15) {
        Buffer<float> x(32);
        for (int i = 0; i < 32; i++) x[i] = i < 16 ? 1.0f : 1e-38f;
        x[at] = odd;
        const Quantized q(level, x, 1, 32);
        EXPECT_TRUE(std::isnan(q.scales[0])) << level_name(level) << " " << odd << " at " << at;
        EXPECT_EQ(q.scales[1], 0.0f);
        EXPECT_EQ(q.values[20], 0);
        EXPECT_TRUE(std::isnan(q.sums[0]));
      }
}

TEST(QuantizeRows, is_equal_at_every_level) {
  Numbers numbers(12);
  for (const std::int64_t n : {0, 32, 64, 576}) {
    Buffer<float> x(4 * n, 3);
    for (std::int64_t i = 0; i < x.size(); i++)
      x[i] = std::ldexp(numbers.normal(), numbers.integer(-120, 120));
    // Ties: 127/2^6 makes the factor exact, so half steps are hit exactly.
    for (std::int64_t i = 0; i < std::min<std::int64_t>(n, 16); i++)
      x[i] = i == 0 ? 127.0f / 64 : (static_cast<float>(i) + 0.5f) / 64;
    const Quantized want(Level::scalar, x, 4, n);
    for (const Level level : runnable_levels()) {
      const Quantized q(level, x, 4, n);
      EXPECT_TRUE(same_bytes(q.values, want.values)) << level_name(level);
      EXPECT_TRUE(same_bytes(q.code_sums, want.code_sums)) << level_name(level);
      EXPECT_TRUE(same_bits(q.scales, want.scales)) << level_name(level);
      EXPECT_TRUE(same_bits(q.sums, want.sums)) << level_name(level);
    }
  }
}

}  // namespace
}  // namespace godwit::kernels
