#include "decode/oracle_greedy.h"

#include <gtest/gtest.h>

#include "base/mx_ops.h"

namespace godwit::decode {
namespace {

TEST(OracleGreedy, takes_the_first_of_the_ties_that_bf16_subtraction_makes) {
  // 2980 logits near 0: logsumexp is 8 = ln 2981, and 2^-7 - 8 rounds to -8 in bf16 (spacing 2^-5 there), a
  // tie with 0 - 8. The plain argmax would be token 1.
  std::vector<float> row(2980, 0.0f);
  row[1] = 0x1p-7f;
  const mx::array logits = mx::array(row.begin(), {1, 2980}, mx::bfloat16);
  EXPECT_EQ(mx::argmax(logits, -1).item<std::uint32_t>(), 1u);
  EXPECT_EQ(oracle_greedy(logits).token.item<std::uint32_t>(), 0u);
  EXPECT_EQ(oracle_greedy(mx::astype(logits, mx::float32)).token.item<std::uint32_t>(),
            1u);  // f32 holds the difference
}

TEST(OracleGreedy, the_normaliser_is_not_finite_for_rows_without_a_choice) {
  const auto normaliser = [](std::vector<float> row) {
    return oracle_greedy(mx::array(row.begin(), {1, 2}, mx::float32)).normaliser.item<float>();
  };
  EXPECT_TRUE(std::isfinite(normaliser({1, 2})));
  EXPECT_TRUE(std::isfinite(normaliser({-INFINITY, 2})));
  EXPECT_FALSE(std::isfinite(normaliser({-INFINITY, -INFINITY})));
  EXPECT_FALSE(std::isfinite(normaliser({0, NAN})));
  EXPECT_FALSE(std::isfinite(normaliser({NAN, -INFINITY})));
  EXPECT_FALSE(std::isfinite(normaliser({0, INFINITY})));
}

}  // namespace
}  // namespace godwit::decode
