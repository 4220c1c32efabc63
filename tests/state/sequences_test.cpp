// Random sequences of operations on rows against the model of a row as a list of tokens (reference/kv.md 12),
// over all pairs of codec and window.
#include <gtest/gtest.h>

#include <iostream>
#include <sstream>

#include "state/sequence.h"
#include "state/tags.h"

namespace godwit::cache::state_test {
namespace {

constexpr int kSequences = GODWIT_SEQUENCES;

TEST(StateSequences, NativeDense) { check_sequences(NumericMode::native, dense_pairs(), kSequences / 5); }
TEST(StateSequences, NativeAffine) { check_sequences(NumericMode::native, affine_pairs(), kSequences / 2); }
TEST(StateSequences, NativeTurbo) {
  check_sequences(NumericMode::native, turbo_pairs(), kSequences * 3 / 10);
}
// A step of MLX's ops takes fifty times as long as one of ours.
TEST(StateSequences, ReferenceDense) {
  check_sequences(NumericMode::reference, dense_pairs(), kSequences / 10);
}
TEST(StateSequences, ReferenceAffine) {
  check_sequences(NumericMode::reference, affine_pairs(), kSequences / 10);
}
TEST(StateSequences, ReferenceTurbo) {
  check_sequences(NumericMode::reference, turbo_pairs(), kSequences / 20);
}

// Ragged rows under small windows: each query's visible positions, by tags (property 16).
TEST(StateSequences, Windows) {
  const rc::detail::TestParams params = rc::detail::configuration().testParams;
  std::cout << kSequences << " histories; RC_PARAMS=\"seed=" << params.seed << "\" runs them again"
            << std::endl;
  rc::detail::TestParams all = params;
  all.maxSuccess = kSequences;
  const auto property = [](bool native) {
    const auto small = [](int below) { return rc::gen::resize(100, rc::gen::inRange(0, below)); };
    const int window = *rc::gen::element(4, 8, 9), rows = native ? 1 + *small(3) : 1;
    const auto chunk = rc::gen::element(0, 1, 2, 3, 5, 12);
    const auto steps = *rc::gen::resize(
        14, rc::gen::container<std::vector<std::vector<int>>>(
                rc::gen::container<std::vector<int>>(static_cast<std::size_t>(rows), chunk)));
    TaggedRows tagged(native ? NumericMode::native : NumericMode::reference, window, rows);
    for (const auto& tokens : steps) tagged.append(tokens);
  };
  const rc::detail::TestResult result =
      rc::detail::checkTestable(property, rc::detail::TestMetadata{"", "windows by tags"}, all);
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  EXPECT_TRUE(result.is<rc::detail::SuccessResult>()) << text.str();
}

}  // namespace
}  // namespace godwit::cache::state_test
