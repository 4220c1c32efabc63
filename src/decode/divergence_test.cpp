#include "decode/divergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/error.h"

namespace godwit::decode {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// One rounding of a double per term: sums of a handful of terms near 1.
constexpr double kExact = 1e-15;

TEST(KlDivergence, of_a_distribution_to_itself_is_exactly_zero) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0, 9);
  std::vector<float> row(5000);
  for (float& logit : row) logit = normal(random);
  row[7] = kNever;
  EXPECT_EQ(kl_divergence(row, row), 0.0);
}

TEST(KlDivergence, of_two_points_has_its_closed_form) {
  // p = 1/2, q = 1 / (1 + e): the divergence is log cosh(1/2).
  const std::vector<float> even = {0, 0}, tilted = {1, 0};
  EXPECT_NEAR(kl_divergence(even, tilted), std::log(std::cosh(0.5)), kExact);
  // The other way: q log 2q + (1 - q) log 2(1 - q).
  const double q = 1 / (1 + std::exp(-1.0));
  EXPECT_NEAR(kl_divergence(tilted, even), q * std::log(2 * q) + (1 - q) * std::log(2 * (1 - q)), kExact);
}

TEST(KlDivergence, of_a_certain_token_is_its_surprise_in_the_other) {
  const std::vector<float> certain = {kNever, 3, kNever, kNever}, even = {5, 5, 5, 5};
  EXPECT_NEAR(kl_divergence(certain, even), std::log(4.0), kExact);
  EXPECT_EQ(kl_divergence(even, certain), std::numeric_limits<double>::infinity());
}

TEST(KlDivergence, depends_on_no_common_shift_and_no_size_of_the_logits) {
  const std::vector<float> a = {1, 0, -2}, b = {0.5, 0, 1};
  const auto shifted = [](std::vector<float> row, float by) {
    for (float& logit : row) logit += by;
    return row;
  };
  // At 4096 a double still holds 40 bits behind the point: 1e-12.
  EXPECT_NEAR(kl_divergence(shifted(a, 4096), shifted(b, -4096)), kl_divergence(a, b), 1e-12);
  EXPECT_TRUE(std::isfinite(kl_divergence(shifted(a, 3e38f), shifted(b, -3e38f))));
}

TEST(KlDivergence, is_never_negative) {
  std::mt19937 random(12);
  std::normal_distribution<float> normal(0, 4);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> a(64), b(64);
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = normal(random);
      b[i] = std::nextafter(a[i], 9.0f);  // a hair's breadth away: rounding decides
    }
    EXPECT_GE(kl_divergence(a, b), 0.0);
  }
}

TEST(LogSumExp, is_the_size_of_a_vocabulary_of_equal_logits_and_refuses_what_is_no_distribution) {
  EXPECT_NEAR(log_sum_exp(std::vector<float>(1024, -7.5f)), std::log(1024.0) - 7.5, 1e-14);
  EXPECT_EQ(log_sum_exp(std::vector<float>{kNever, 2}), 2.0);
  for (const std::vector<float>& row :
       {std::vector<float>{0, NAN}, {kNever, kNever}, {0, std::numeric_limits<float>::infinity()}, {NAN, 0}})
    EXPECT_THROW(log_sum_exp(row), Error);
}

TEST(Divergence, averages_over_positions_and_counts_equal_top_tokens) {
  const std::vector<float> even = {0, 0}, tilted = {1, 0}, other = {0, 1};
  Divergence divergence;
  divergence.add(even, even);
  divergence.add(even, tilted);  // ties go to the lowest id
  divergence.add(even, other);
  divergence.add(tilted, tilted);
  EXPECT_EQ(divergence.positions(), 4);
  EXPECT_NEAR(divergence.mean(), std::log(std::cosh(0.5)) / 2, kExact);
  EXPECT_NEAR(divergence.largest(), std::log(std::cosh(0.5)), kExact);
  EXPECT_EQ(divergence.top1_agreement(), 0.75);
}

TEST(Perplexity, of_a_uniform_model_is_its_vocabulary) {
  Perplexity perplexity;
  for (const int next : {0, 31, 17}) perplexity.add(std::vector<float>(32, 0.25f), next);
  EXPECT_EQ(perplexity.positions(), 3);
  EXPECT_NEAR(perplexity.value(), 32, 1e-12);
  EXPECT_NEAR(perplexity.standard_error(), 0, 1e-5);  // a root of the rounding of a difference of squares
}

TEST(Perplexity, is_the_geometric_mean_of_one_over_the_probabilities) {
  // p = 1/2 and p = 1/8: √16 = 4. Their logs lie log 2 on either side of the mean, so the deviation with n - 1 is
  // √2 log 2 and the error 4 · √2 log 2 / √2.
  Perplexity perplexity;
  perplexity.add(std::vector<float>{0, 0}, 1);
  EXPECT_EQ(perplexity.standard_error(), 0);
  perplexity.add(std::vector<float>(8, 1), 3);
  EXPECT_NEAR(perplexity.value(), 4, 1e-14);
  EXPECT_NEAR(perplexity.standard_error(), 4 * std::log(2.0), 1e-14);
}

}  // namespace
}  // namespace godwit::decode
