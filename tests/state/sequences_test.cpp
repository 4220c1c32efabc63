// Random sequences of operations on rows against the model of a row as a list of tokens (reference/kv.md 12), over all
// pairs of codec and window.
#include <gtest/gtest.h>

#include "state/sequence.h"

namespace godwit::cache::state_test {
namespace {

constexpr int kSequences = GODWIT_SEQUENCES;

TEST(StateSequences, NativeDense) { check_sequences(NumericMode::native, dense_pairs(), kSequences / 5); }
TEST(StateSequences, NativeAffine) { check_sequences(NumericMode::native, affine_pairs(), kSequences / 2); }
TEST(StateSequences, NativeTurbo) { check_sequences(NumericMode::native, turbo_pairs(), kSequences * 3 / 10); }
TEST(StateSequences, ReferenceDense) { check_sequences(NumericMode::reference, dense_pairs(), kSequences / 5); }
TEST(StateSequences, ReferenceAffine) { check_sequences(NumericMode::reference, affine_pairs(), kSequences / 2); }
TEST(StateSequences, ReferenceTurbo) { check_sequences(NumericMode::reference, turbo_pairs(), kSequences * 3 / 10); }

}  // namespace
}  // namespace godwit::cache::state_test
