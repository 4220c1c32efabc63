// Recurrent layers during Steps and rounds: rows that share a Step, replay, and what stays as it was.
#include "cache/recurrent_layer.h"

#include "base/error.h"
#include "cache/recurrent_test_support.h"

namespace godwit::cache {
namespace {

const RecurrentNeed kNeed = recurrent_need(2, 4, 16, 8, 4);
constexpr NumericMode kModes[] = {NumericMode::reference, NumericMode::native};

// Tokens [begin, end) of sequence `seed` through a Step of one row: the outputs, evaluated.
mx::array step(RecurrentState& state, NumericMode mode, unsigned seed, int begin, int end,
               bool publish = true, mx::Dtype dtype = mx::float32) {
  const RecurrentInputs inputs = slice_tokens(recurrent_inputs(kNeed, 32, seed, dtype), begin, end);
  if (mode == NumericMode::native) {
    ops::NativeRuntime runtime(kernels::best_level(), 1);
    return native_span(runtime, kNeed, state, inputs, publish);
  }
  RecurrentLayer layer(kNeed, state, end - begin);
  mx::array out = layer.recur(inputs);
  std::vector<mx::array> pending = {out};
  layer.pending(pending);
  mx::eval(pending);
  for (const mx::array& x : pending) EXPECT_NE(x.status(), mx::array::Status::unscheduled);
  if (publish)
    layer.publish();
  else
    layer.abandon();
  return out;
}

RecurrentRef alone(NumericMode mode, unsigned seed, const std::vector<int>& spans,
                   mx::Dtype dtype = mx::float32) {
  if (spans.empty()) return nullptr;
  return forward(kNeed, recurrent_inputs(kNeed, 32, seed, dtype), spans, mode).memory;
}

TEST(RecurrentLayer, RowsOfUnequalLengthInOneStepEqualEachAlone) {
  for (const std::vector<int>& tokens : std::vector<std::vector<int>>{{3, 1, 7}, {1, 1}, {5}}) {
    std::vector<RecurrentState> states(tokens.size());
    std::vector<NativeRecurrent::Part> parts;
    std::vector<mx::array> mixed, decay, update, want;
    RecurrentInputs inputs = recurrent_inputs(kNeed, 1, 0);
    for (std::size_t r = 0; r < tokens.size(); ++r) {
      const auto seed = static_cast<unsigned>(r + 1);
      const int warm = 2 * static_cast<int>(r);  // the first row has no memory yet
      if (warm > 0) step(states[r], NumericMode::native, seed, 0, warm);
      RecurrentState copy = states[r];
      want.push_back(step(copy, NumericMode::native, seed, warm, warm + tokens[r]));
      const RecurrentInputs own = slice_tokens(recurrent_inputs(kNeed, 32, seed), warm, warm + tokens[r]);
      mixed.push_back(own.mixed);
      decay.push_back(own.decay);
      update.push_back(own.update);
      parts.push_back({&states[r], tokens[r]});
    }
    inputs.mixed = mx::concatenate(mixed, 0);
    inputs.decay = mx::concatenate(decay, 0);
    inputs.update = mx::concatenate(update, 0);
    ops::DeltaLayer memories;
    NativeRecurrent layer(kNeed, 0, memories, parts);
    ops::NativeRuntime runtime(kernels::best_level(), 2);
    const mx::array got = testing_support::native_recur(runtime, kNeed, memories, inputs);
    EXPECT_TRUE(same_bits(got, mx::concatenate(want, 0)));
    layer.publish();
    for (std::size_t r = 0; r < tokens.size(); ++r) {
      const int total = 2 * static_cast<int>(r) + tokens[r];
      EXPECT_TRUE(
          same_memory(states[r].memory(), alone(NumericMode::native, static_cast<unsigned>(r + 1), {total})));
    }
  }
}

// The replay of the first tokens of a round equals a forward over only those tokens (kv.md 12, property 41).
TEST(RecurrentState, AReplayEqualsAForwardOverTheKeptTokens) {
  for (const NumericMode mode : kModes)
    for (const mx::Dtype dtype : {mx::float32, mx::bfloat16, mx::float16})
      for (const int warm : {0, 1, 5}) {
        RecurrentState state;
        if (warm > 0) step(state, mode, 1, 0, warm, true, dtype);
        state.begin();
        step(state, mode, 1, warm, warm + 6, true, dtype);
        for (int keep = 0; keep <= 6; ++keep) {
          std::vector<int> spans;
          if (warm > 0) spans.push_back(warm);
          if (keep > 0) spans.push_back(keep);
          EXPECT_TRUE(same_memory(state.replayed(kNeed, keep), alone(mode, 1, spans, dtype)))
              << "keep " << keep << " behind " << warm;
        }
        EXPECT_TRUE(same_memory(state.replayed(kNeed, 6), state.memory()));
      }
}

TEST(RecurrentState, ARoundOfSeveralStepsIsReplayedStepByStep) {
  for (const NumericMode mode : kModes) {
    RecurrentState state;
    step(state, mode, 2, 0, 3);
    state.begin();
    int end = 3;
    for (const int tokens : {2, 1, 4}) step(state, mode, 2, end, end + tokens), end += tokens;
    const std::vector<std::vector<int>> kept = {{3},          {3, 1},       {3, 2},       {3, 2, 1},
                                                {3, 2, 1, 1}, {3, 2, 1, 2}, {3, 2, 1, 3}, {3, 2, 1, 4}};
    for (int keep = 0; keep <= 7; ++keep)
      EXPECT_TRUE(same_memory(state.replayed(kNeed, keep),
                              alone(mode, 2, kept[static_cast<std::size_t>(keep)])))
          << keep;
    for (const int keep : {-1, 8}) EXPECT_THROW(state.replayed(kNeed, keep), Error);
  }
}

// kv.md 12, property 40.
TEST(RecurrentState, GoingBackThenContinuingEqualsNeverHavingSeenTheRest) {
  for (const NumericMode mode : kModes)
    for (int keep = 0; keep <= 4; ++keep) {
      RecurrentState state, plain;
      step(state, mode, 3, 0, 3), step(plain, mode, 3, 0, 3);
      state.begin();
      EXPECT_TRUE(state.in_round());
      if (keep > 0) step(state, mode, 3, 3, 3 + keep);  // what will be accepted
      step(state, mode, /*seed=*/4, 10, 12);            // drafts that will not
      state.resolve(state.replayed(kNeed, keep));
      EXPECT_FALSE(state.in_round());
      EXPECT_THROW(state.replayed(kNeed, 0), Error);
      if (keep > 0) step(plain, mode, 3, 3, 3 + keep);
      EXPECT_TRUE(same_memory(state.memory(), plain.memory())) << keep;
      EXPECT_TRUE(same_bits(step(state, mode, 3, 3 + keep, 9), step(plain, mode, 3, 3 + keep, 9))) << keep;
    }
}

TEST(RecurrentState, CommittingKeepsTheMemoryAndForgetsTheInputs) {
  RecurrentState state, plain;
  step(state, NumericMode::native, 5, 0, 2), step(plain, NumericMode::native, 5, 0, 2);
  for (int i = 2; i < 6; i += 2) {
    state.begin();
    step(state, NumericMode::native, 5, i, i + 2), step(plain, NumericMode::native, 5, i, i + 2);
    state.resolve(state.memory());
    EXPECT_TRUE(same_memory(state.memory(), plain.memory()));
  }
  EXPECT_EQ(state.bytes(), 4u * (4 * 8 * 16 + 3 * static_cast<std::size_t>(kNeed.channels)));
}

// A memory is immutable: what a fork was given is what it replays from, whatever its origin does.
TEST(RecurrentState, AForkIsUntouchedByLaterStepsOfItsOrigin) {
  for (const NumericMode mode : kModes) {
    RecurrentState origin;
    step(origin, mode, 6, 0, 5);
    RecurrentState fork = origin;
    EXPECT_EQ(fork.memory(), origin.memory());
    for (int i = 5; i < 12; ++i) step(origin, mode, 6, i, i + 1);
    EXPECT_TRUE(same_memory(fork.memory(), alone(mode, 6, {5})));
    fork.begin();
    step(fork, mode, 7, 5, 9);
    RecurrentState plain;
    step(plain, mode, 6, 0, 5), step(plain, mode, 7, 5, 7);
    EXPECT_TRUE(same_memory(fork.replayed(kNeed, 2), plain.memory()));
    EXPECT_TRUE(same_memory(fork.replayed(kNeed, 0), alone(mode, 6, {5})));
  }
}

TEST(RecurrentLayer, AStepThatIsAbandonedChangesNothing) {
  for (const NumericMode mode : kModes) {
    RecurrentState state;
    step(state, mode, 8, 0, 4);
    const RecurrentRef before = state.memory();
    state.begin();
    step(state, mode, 9, 4, 6, /*publish=*/false);
    EXPECT_EQ(state.memory(), before);
    EXPECT_THROW(state.replayed(kNeed, 1), Error);
    EXPECT_EQ(state.replayed(kNeed, 0), before);
  }
}

TEST(RecurrentLayer, BrokenPromisesAreErrors) {
  RecurrentState one, two;
  RecurrentLayer reference(kNeed, one, 3);
  EXPECT_FALSE(reference.stored());
  EXPECT_THROW(reference.recur(recurrent_inputs(kNeed, 2, 1)), Error);
  EXPECT_FALSE(reference.stored());
  reference.recur(recurrent_inputs(kNeed, 3, 1));
  EXPECT_TRUE(reference.stored());
  EXPECT_THROW(reference.recur(recurrent_inputs(kNeed, 3, 1)), Error);
  EXPECT_THROW(reference.native_layer(), Error);

  const NativeRecurrent::Part parts[] = {{&one, 1}, {&two, 2}};
  ops::DeltaLayer memories;
  NativeRecurrent layer(kNeed, 0, memories, parts);
  ops::NativeRuntime runtime(kernels::best_level(), 1);
  const auto recur = [&](const RecurrentNeed& need, int tokens) {
    testing_support::native_recur(runtime, need, memories, recurrent_inputs(need, tokens, 1));
  };
  EXPECT_THROW(recur(kNeed, 2), Error) << "other tokens than were planned";
  EXPECT_THROW(recur(recurrent_need(2, 4, 16, 8, 3), 3), Error) << "another kernel";
  EXPECT_THROW(recur(recurrent_need(2, 4, 16, 12, 4), 3), Error) << "other heads";
  EXPECT_FALSE(layer.stored());
  recur(kNeed, 3);
  EXPECT_TRUE(layer.stored());
  EXPECT_THROW(recur(kNeed, 3), Error) << "twice";
  EXPECT_THROW(layer.recur(recurrent_inputs(kNeed, 3, 1)), Error) << "MLX's operations in native mode";
  EXPECT_EQ(one.memory(), nullptr);
  layer.publish();
  memories.stored = false;
  EXPECT_THROW(testing_support::native_recur(runtime, kNeed, memories, recurrent_inputs(kNeed, 3, 1)), Error)
      << "after the step";
}

}  // namespace
}  // namespace godwit::cache
