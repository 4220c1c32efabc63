#include <gtest/gtest.h>

#include <string_view>

#include "one_answer/child.h"
#include "support/hang_report.h"

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--child") return godwit::one_answer::answer_questions(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  godwit::testing_support::report_hangs();
  return RUN_ALL_TESTS();
}
