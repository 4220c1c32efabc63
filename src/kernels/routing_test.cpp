// Scores, softmax, sigmoid and the sum over experts: against double, and every level against scalar on bits.
#include <algorithm>
#include <limits>

#include "kernels/kernel_test_support.h"

namespace godwit::kernels {
namespace {

constexpr std::int64_t kLengths[] = {0, 1, 7, 8, 15, 16, 17, 33, 63, 128, 576};

const KernelTable& scalar_kernels() { return kernels_for(Level::scalar); }

TEST(RowDots, is_close_to_double_and_equal_at_every_level) {
  constexpr std::int64_t kRows = 3;
  for (const std::int64_t n : kLengths)
    for (const std::int64_t outputs : {1, 3, 4, 6, 8}) {
      Numbers numbers(static_cast<std::uint32_t>(n * 8 + outputs));
      Buffer<float> x(kRows * n, 1), weights(outputs * n, 3), want(kRows * outputs);
      numbers.fill(x, 3.0f);
      numbers.fill(weights);
      scalar_kernels().row_dots({x.data(), weights.data(), want.data(), kRows, n, outputs, n, outputs});
      for (std::int64_t at = 0; at < want.size(); at++) {
        double exact = 0, size = 0;
        for (std::int64_t k = 0; k < n; k++) {
          const double term = double{x[at / outputs * n + k]} * weights[at % outputs * n + k];
          exact += term;
          size += std::abs(term);
        }
        // A lane rounds once for each of its terms, the tree four times.
        EXPECT_NEAR(want[at], exact, (static_cast<double>(n) / 16 + 6) * kUnit * size) << n;
      }
      for (const Level level : runnable_levels()) {
        Buffer<float> y(kRows * outputs, 1);
        kernels_for(level).row_dots({x.data(), weights.data(), y.data(), kRows, n, outputs, n, outputs});
        EXPECT_TRUE(same_bits(y, want)) << level_name(level) << " n " << n;
      }
    }
}

// What routes a row: the same score whichever rows and outputs are asked for beside it.
TEST(RowDots, the_bits_of_a_score_depend_on_its_row_and_output_alone) {
  constexpr std::int64_t kRows = 5, kOutputs = 11, kN = 100;
  Numbers numbers(7);
  Buffer<float> x(kRows * kN), weights(kOutputs * kN), together(kRows * kOutputs);
  numbers.fill(x);
  numbers.fill(weights);
  for (const Level level : runnable_levels()) {
    const auto row_dots = kernels_for(level).row_dots;
    row_dots({x.data(), weights.data(), together.data(), kRows, kN, kOutputs, kN, kOutputs});
    for (std::int64_t r = 0; r < kRows; r++)
      for (std::int64_t o = 0; o < kOutputs; o++) {
        float alone = 0;
        row_dots({x.data() + r * kN, weights.data() + o * kN, &alone, 1, kN, 1, kN, 1});
        EXPECT_TRUE(same_bits(alone, together[r * kOutputs + o]))
            << level_name(level) << " " << r << " " << o;
      }
  }
}

TEST(Softmax, is_close_to_double_and_equal_at_every_level) {
  constexpr std::int64_t kRows = 3;
  for (const std::int64_t n : kLengths) {
    Numbers numbers(static_cast<std::uint32_t>(n));
    Buffer<float> x(kRows * n, 1), want(kRows * n);
    numbers.fill(x, 4.0f);
    scalar_kernels().softmax({x.data(), want.data(), kRows, n});
    if (n == 0) continue;
    for (std::int64_t r = 0; r < kRows; r++) {
      const float* const row = x.data() + r * n;
      double sum = 0, drift = 0;
      const double top = *std::max_element(row, row + n);
      for (std::int64_t i = 0; i < n; i++) {
        sum += std::exp(row[i] - top);
        drift += std::exp(row[i] - top) * (3 + top - row[i]);
      }
      for (std::int64_t i = 0; i < n; i++) {
        // exp is good to 2.1 units, and a unit of its argument counts |argument| times; the sum keeps the
        // mean of that over its terms and adds a lane's roundings and the tree's; one division follows.
        const double exact = std::exp(row[i] - top) / sum;
        const double units = 3 + top - row[i] + drift / sum + static_cast<double>(n) / 16 + 6;
        EXPECT_NEAR(want[r * n + i], exact, exact * units * kUnit + 1e-37) << n;
      }
    }
    for (const Level level : runnable_levels()) {
      Buffer<float> y(kRows * n, 3);
      kernels_for(level).softmax({x.data(), y.data(), kRows, n});
      EXPECT_TRUE(same_bits(y, want)) << level_name(level) << " n " << n;
      std::copy(x.data(), x.data() + x.size(), y.data());
      kernels_for(level).softmax({y.data(), y.data(), kRows, n});
      EXPECT_TRUE(same_bits(y, want)) << level_name(level) << " in place, n " << n;
    }
  }
}

TEST(Softmax, what_is_not_finite_shows_in_the_whole_row) {
  for (const Level level : runnable_levels())
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
      for (const std::int64_t at : {0, 15, 16, 19}) {
        Buffer<float> x(20), y(20);
        x[at] = bad;
        kernels_for(level).softmax({x.data(), y.data(), 1, 20});
        for (std::int64_t i = 0; i < 20; i++) EXPECT_TRUE(std::isnan(y[i])) << level_name(level) << " " << at;
      }
}

TEST(Sigmoid, is_close_to_double_and_equal_at_every_level) {
  for (const std::int64_t n : kLengths) {
    Numbers numbers(static_cast<std::uint32_t>(n));
    Buffer<float> x(n, 1), want(n);
    numbers.fill(x, 20.0f);
    scalar_kernels().sigmoid({x.data(), want.data(), n});
    for (std::int64_t i = 0; i < n; i++) {
      const double exact = 1 / (1 + std::exp(-double{x[i]}));
      EXPECT_NEAR(want[i], exact, exact * 5 * kUnit + 1e-38) << x[i];  // exp 2.1 units, then two operations
    }
    for (const Level level : runnable_levels()) {
      Buffer<float> y(n, 1);
      kernels_for(level).sigmoid({x.data(), y.data(), n});
      EXPECT_TRUE(same_bits(y, want)) << level_name(level) << " n " << n;
    }
  }
}

TEST(WeightedSum, is_close_to_double_and_equal_at_every_level) {
  constexpr std::int64_t kRows = 9;
  for (const std::int64_t n : kLengths)
    for (const std::int64_t count : {0, 1, 2, 8}) {
      Numbers numbers(static_cast<std::uint32_t>(n * 16 + count));
      Buffer<float> rows(kRows * n), weights(count), want(n);
      Buffer<std::int32_t> index(count);
      numbers.fill(rows);
      numbers.fill(weights);
      for (std::int64_t j = 0; j < count; j++) index[j] = numbers.integer(0, kRows - 1);
      scalar_kernels().weighted_sum({rows.data(), index.data(), weights.data(), count, want.data(), n});
      for (std::int64_t i = 0; i < n; i++) {
        double exact = 0, size = 0;
        for (std::int64_t j = 0; j < count; j++) {
          const double term = double{weights[j]} * rows[index[j] * n + i];
          exact += term;
          size += std::abs(term);
        }
        EXPECT_NEAR(want[i], exact, (static_cast<double>(count) + 1) * kUnit * size);
      }
      for (const Level level : runnable_levels()) {
        Buffer<float> y(n, 1);
        kernels_for(level).weighted_sum({rows.data(), index.data(), weights.data(), count, y.data(), n});
        EXPECT_TRUE(same_bits(y, want)) << level_name(level) << " n " << n << " count " << count;
      }
    }
}

}  // namespace
}  // namespace godwit::kernels
