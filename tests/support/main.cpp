#include <gtest/gtest.h>

#include "support/hang_report.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  godwit::testing_support::report_hangs();
  return RUN_ALL_TESTS();
}
