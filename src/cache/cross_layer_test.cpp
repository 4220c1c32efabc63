// Cross layers during Steps: written once, shared by forks, read by every query whole.
#include "cache/cross_layer.h"

#include <cmath>

#include "base/error.h"
#include "cache/recurrent_test_support.h"
#include "kernels/select.h"
#include "ops/native_runtime.h"

namespace godwit::cache {
namespace {

constexpr int kHeads = 4, kKvHeads = 2, kKeyDim = 32, kValueDim = 16;
const LayerNeed kNeed = {
    .content = Content::cross, .kv_heads = kKvHeads, .key_dim = kKeyDim, .value_dim = kValueDim};
const AttendSpec kSpec{.scale = 0.2f, .soft_cap = 0.0f, .sinks = std::nullopt, .selected = std::nullopt};

mx::array keys_of(int positions, unsigned seed) { return random_array({positions, kKvHeads, kKeyDim}, seed); }
mx::array values_of(int positions, unsigned seed) {
  return random_array({positions, kKvHeads, kValueDim}, seed + 1);
}
mx::array queries_of(int tokens, unsigned seed) { return random_array({tokens, kHeads, kKeyDim}, seed + 2); }

class Cross : public testing::TestWithParam<NumericMode> {
 protected:
  CrossLayer layer(std::vector<CrossLayer::Part> parts) {
    return CrossLayer(kNeed, GetParam(), {pool_, &runtime_}, std::move(parts));
  }
  void publish(CrossLayer& layer) {
    std::vector<mx::array> pending;
    layer.pending(pending);
    mx::eval(pending);
    layer.publish();
  }
  void write(CrossMemory& memory, int positions, unsigned seed) {
    CrossLayer step = layer({{&memory, 1}});
    step.write(keys_of(positions, seed), values_of(positions, seed));
    publish(step);
  }
  mx::array attend(CrossMemory& memory, int tokens, unsigned seed, const AttendSpec& spec = kSpec) {
    mx::array out = mx::contiguous(layer({{&memory, tokens}}).attend(queries_of(tokens, seed), spec));
    mx::eval(out);
    return out;
  }

  std::shared_ptr<BlockPool> pool_ = std::make_shared<BlockPool>();
  ops::NativeRuntime runtime_{kernels::best_level(), 2};
};

// From the definition, in double.
void expect_attends(const mx::array& out, int positions, int tokens, unsigned seed) {
  const mx::array k = keys_of(positions, seed), v = values_of(positions, seed), q = queries_of(tokens, seed);
  ASSERT_EQ(out.shape(), (mx::Shape{tokens, kHeads, kValueDim}));
  for (int query = 0; query < tokens; ++query)
    for (int head = 0; head < kHeads; ++head) {
      const int kv = head / (kHeads / kKvHeads);
      std::vector<double> sum(kValueDim, 0.0);
      double total = 0;
      for (int p = 0; p < positions; ++p) {
        double score = 0;
        for (int d = 0; d < kKeyDim; ++d)
          score += double{q.data<float>()[(query * kHeads + head) * kKeyDim + d]} *
                   k.data<float>()[(p * kKvHeads + kv) * kKeyDim + d];
        const double weight = std::exp(0.2f * score);
        total += weight;
        for (int d = 0; d < kValueDim; ++d)
          sum[static_cast<std::size_t>(d)] += weight * v.data<float>()[(p * kKvHeads + kv) * kValueDim + d];
      }
      // A score of size below 8 carries 34 roundings of f32, which e^score multiplies; values are below 5,
      // and up to 200 terms are summed in blocks of 64: far below 1e-4, far above what one wrong position
      // would change.
      for (int d = 0; d < kValueDim; ++d)
        EXPECT_NEAR(out.data<float>()[(query * kHeads + head) * kValueDim + d],
                    sum[static_cast<std::size_t>(d)] / total, 1e-4);
    }
}

TEST_P(Cross, EveryQuerySeesAllPositionsOfItsRow) {
  for (const int positions : {1, 63, 64, 65, 200}) {
    CrossMemory memory;
    write(memory, positions, 10);
    for (const int tokens : {1, 5}) expect_attends(attend(memory, tokens, 10), positions, tokens, 10);
  }
}

TEST_P(Cross, TheStepThatWritesAlsoReads) {
  CrossMemory memory;
  CrossLayer step = layer({{&memory, 3}});
  EXPECT_FALSE(step.stored());
  step.write(keys_of(70, 20), values_of(70, 20));
  EXPECT_TRUE(step.stored());
  mx::array out = mx::contiguous(step.attend(queries_of(3, 20), kSpec));
  mx::eval(out);
  EXPECT_EQ(memory, nullptr);
  publish(step);
  EXPECT_TRUE(same_bits(attend(memory, 3, 20), out));
  EXPECT_TRUE(layer({{&memory, 1}}).stored());
}

TEST_P(Cross, AStepThatIsAbandonedWritesNothing) {
  CrossMemory memory;
  {
    CrossLayer step = layer({{&memory, 1}});
    step.write(keys_of(70, 21), values_of(70, 21));
    step.abandon();
    EXPECT_FALSE(step.stored());
  }
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(pool_->resident_bytes(), 0u);
}

TEST_P(Cross, ForksShareTheMemoryAndOutliveTheirOrigin) {
  CrossMemory origin;
  write(origin, 130, 22);
  const mx::array want = attend(origin, 2, 22);
  CrossMemory fork = origin;
  EXPECT_EQ(fork->bytes(), origin->bytes());
  EXPECT_GE(origin->bytes(), 4u * 130 * kKvHeads * (kKeyDim + kValueDim));
  origin.reset();
  EXPECT_TRUE(same_bits(attend(fork, 2, 22), want));
  fork.reset();
  EXPECT_EQ(pool_->resident_bytes(), 0u);
}

TEST_P(Cross, SinksAndSoftCapsApply) {
  CrossMemory memory;
  write(memory, 40, 23);
  AttendSpec spec = kSpec;
  spec.sinks = mx::array({60.0f, 60.0f, 60.0f, 60.0f});
  const mx::array sunk = attend(memory, 2, 23, spec);
  for (std::size_t i = 0; i < sunk.size(); ++i) EXPECT_NEAR(sunk.data<float>()[i], 0.0f, 1e-6);
  spec.sinks.reset();
  spec.soft_cap = 1e-3f;  // all scores become nearly equal: the mean of the values
  const mx::array flat = attend(memory, 1, 23, spec);
  mx::array mean = mx::contiguous(mx::repeat(mx::mean(values_of(40, 23), 0), kHeads / kKvHeads, 0));
  mx::eval(mean);
  for (std::size_t i = 0; i < flat.size(); ++i)
    EXPECT_NEAR(flat.data<float>()[i], mean.data<float>()[i], 1e-2);
}

TEST_P(Cross, BrokenPromisesAreErrors) {
  CrossMemory memory;
  EXPECT_THROW(layer({{&memory, 1}}).attend(queries_of(1, 1), kSpec), Error);
  CrossLayer step = layer({{&memory, 1}});
  EXPECT_THROW(step.write(keys_of(4, 1), values_of(5, 1)), Error);
  EXPECT_THROW(step.write(values_of(4, 1), values_of(4, 1)), Error);
  EXPECT_THROW(step.write(keys_of(0, 1), values_of(0, 1)), Error);
  step.write(keys_of(4, 1), values_of(4, 1));
  EXPECT_THROW(step.write(keys_of(4, 1), values_of(4, 1)), Error);
  publish(step);
  EXPECT_THROW(layer({{&memory, 1}}).write(keys_of(4, 1), values_of(4, 1)), Error);
  AttendSpec selecting = kSpec;
  selecting.selected = mx::zeros({1, 1}, mx::int32);
  EXPECT_THROW(layer({{&memory, 1}}).attend(queries_of(1, 1), selecting), Error);
  EXPECT_THROW(layer({{&memory, 1}}).recur(recurrent_inputs(recurrent_need(1, 1, 16, 16, 2), 1, 1)), Error);
}

INSTANTIATE_TEST_SUITE_P(BothModes, Cross, testing::Values(NumericMode::reference, NumericMode::native),
                         [](const auto& mode) {
                           return mode.param == NumericMode::native ? "native" : "reference";
                         });

class NativeCross : public Cross {};

TEST_P(NativeCross, RowsInOneStepEqualEachAloneWhateverThreadsAndLevel) {
  const std::vector<int> positions = {70, 1, 200}, tokens = {2, 1, 20};
  std::vector<CrossMemory> memories(3);
  std::vector<CrossLayer::Part> parts;
  std::vector<mx::array> queries, want;
  for (std::size_t r = 0; r < 3; ++r) {
    const auto seed = static_cast<unsigned>(30 + r * 7);
    write(memories[r], positions[r], seed);
    want.push_back(attend(memories[r], tokens[r], seed));
    queries.push_back(queries_of(tokens[r], seed));
    parts.push_back({&memories[r], tokens[r]});
  }
  for (const kernels::Level level : kernels::runnable_levels()) {
    ops::NativeRuntime runtime(level, 3);
    CrossLayer step(kNeed, NumericMode::native, {pool_, &runtime}, parts);
    EXPECT_TRUE(same_bits(step.attend(mx::concatenate(queries, 0), kSpec), mx::concatenate(want, 0)));
    EXPECT_THROW(step.write(keys_of(4, 1), values_of(4, 1)), Error);
  }
}

INSTANTIATE_TEST_SUITE_P(Native, NativeCross, testing::Values(NumericMode::native));

TEST(ReferenceCross, TakesOneRow) {
  CrossMemory one, two;
  EXPECT_THROW(CrossLayer(kNeed, NumericMode::reference, {}, {{&one, 1}, {&two, 1}}), Error);
}

}  // namespace
}  // namespace godwit::cache
