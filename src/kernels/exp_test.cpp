#include "kernels/exp-inl.h"

#include "kernels/kernel_test_support.h"
#include "kernels/lanes_scalar-inl.h"

namespace godwit::kernels {
namespace {

float exp_of(float x) { return exp(ScalarLanes::set1(x)).first(); }
float tanh_of(float x) { return tanh(ScalarLanes::set1(x)).first(); }

// Every level computes these bits (kernels that use exp are compared level by level), so one body is
// measured.
TEST(Exp, is_within_its_stated_error_of_the_double_value) {
  double worst = 0;
  for (float x = -87.33f; x < 88.37f; x += 0.0037f) {
    const double want = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(exp_of(x) - want) / want);
  }
  EXPECT_LT(worst, 1.2e-7);
  RecordProperty("worst_relative_error", std::to_string(worst * 1e9) + "e-9");
}

TEST(Exp, has_exact_ends) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exp_of(0.0f), 1.0f);
  EXPECT_EQ(exp_of(-0.0f), 1.0f);
  EXPECT_EQ(exp_of(-inf), 0.0f);
  EXPECT_EQ(exp_of(-1000.0f), 0.0f);
  EXPECT_EQ(exp_of(inf), inf);
  EXPECT_EQ(exp_of(100.0f), inf);
  EXPECT_TRUE(std::isnan(exp_of(std::nanf(""))));
}

TEST(Tanh, is_within_its_stated_error_of_the_double_value) {
  double worst = 0;
  const auto measure = [&](float x) {
    const double want = std::tanh(static_cast<double>(x));
    worst = std::max(worst, std::abs(tanh_of(x) - want) / std::abs(want));
    ASSERT_EQ(tanh_of(-x), -tanh_of(x)) << x;
  };
  for (float x = 0.00011f; x < 12.0f; x += 0.00037f) measure(x);
  for (float x = 1e-30f; x < 1e-3f; x *= 1.37f) measure(x);
  EXPECT_LT(worst, 4e-7);
  RecordProperty("worst_relative_error", std::to_string(worst * 1e9) + "e-9");
}

TEST(Tanh, has_exact_ends) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(tanh_of(0.0f), 0.0f);
  EXPECT_EQ(tanh_of(inf), 1.0f);
  EXPECT_EQ(tanh_of(-inf), -1.0f);
  EXPECT_EQ(tanh_of(1e30f), 1.0f);
  EXPECT_TRUE(std::isnan(tanh_of(std::nanf(""))));
}

}  // namespace
}  // namespace godwit::kernels
