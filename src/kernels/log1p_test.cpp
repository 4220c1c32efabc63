#include "kernels/log1p-inl.h"

#include "kernels/kernel_test_support.h"
#include "kernels/lanes_scalar-inl.h"

namespace godwit::kernels {
namespace {

float log1p_of(float x) { return log1p_of_unit(ScalarLanes::set1(x)).first(); }
float softplus_of(float x) { return softplus(ScalarLanes::set1(x)).first(); }

// Every level computes these bits (delta_gates is compared level by level), so one body is measured.
TEST(Log1p, is_within_its_stated_error_of_the_double_value) {
  double worst = 0;
  for (float x = 1e-30f; x < 1.0f; x = x * 1.0001f) {
    const double want = std::log1p(static_cast<double>(x));
    worst = std::max(worst, std::abs(log1p_of(x) - want) / want);
  }
  EXPECT_LT(worst, 3e-7);
  RecordProperty("worst_relative_error", std::to_string(worst * 1e9) + "e-9");
  EXPECT_EQ(log1p_of(0.0f), 0.0f);
}

TEST(Softplus, is_close_to_double_and_has_exact_ends) {
  for (float x = -87.0f; x < 100.0f; x += 0.0113f) {
    const double want = std::log1p(std::exp(static_cast<double>(x)));
    // exp adds 2 units to log1p's 5, the sum one.
    EXPECT_NEAR(softplus_of(x), want, want * 8 * kUnit) << x;
  }
  EXPECT_EQ(softplus_of(-1000.0f), 0.0f);
  EXPECT_EQ(softplus_of(1000.0f), 1000.0f);
  EXPECT_EQ(softplus_of(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_EQ(softplus_of(std::numeric_limits<float>::infinity()), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(softplus_of(std::nanf(""))));
}

}  // namespace
}  // namespace godwit::kernels
