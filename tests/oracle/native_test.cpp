// `native` mode on the tiny GGUF files and on SmolLM2: near the oracle, whose bits `reference` mode has, and
// with bits of its own that depend on nothing but the model and the tokens.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "base/error.h"
#include "base/mx_ops.h"
#include "oracle/golden_case.h"
#include "oracle/golden_run.h"
#include "oracle/native_run.h"

namespace godwit::oracle {
namespace {

constexpr const char* kCases[] = {
    "gguf-llama-q4_0",   "gguf-llama-q4_1",   "gguf-llama-q4_k_m",  "gguf-llama-rope-factors",
    "gguf-qwen2-q4_k_m", "gguf-qwen3-q4_k_m", "gguf-gemma3-q4_k_m", "gguf-gemma3-q8_0",
};

GoldenCase tiny(const std::string& name) {
  return read_case(std::filesystem::path(GODWIT_GOLDEN_FOLDER) / name);
}

// Longer than two blocks of 64 positions and than every window.
std::vector<int> long_prompt(const models::ModelBundle& model, std::size_t count, unsigned seed = 11) {
  std::mt19937 random(seed);
  std::vector<int> tokens(count);
  for (int& token : tokens) token = static_cast<int>(random() % static_cast<unsigned>(model.vocabulary));
  return tokens;
}

std::vector<int> spans_of(std::size_t total, std::mt19937& random) {
  std::vector<int> spans;
  for (std::size_t left = total; left > 0;) {
    const auto span = std::min<std::size_t>(left, 1 + random() % 40);
    spans.push_back(static_cast<int>(span));
    left -= span;
  }
  return spans;
}

struct Distance {
  double error = 0;   // root mean square of the difference
  double spread = 0;  // standard deviation of the expected logits
};

Distance distance(const std::vector<float>& actual, const mx::array& expected) {
  const float* want = expected.data<float>();
  double error = 0, sum = 0, squares = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    error += std::pow(double{actual[i]} - want[i], 2);
    sum += want[i];
    squares += double{want[i]} * want[i];
  }
  const auto n = static_cast<double>(actual.size());
  return {std::sqrt(error / n), std::sqrt(squares / n - sum / n * (sum / n))};
}

class NativeModels : public testing::TestWithParam<const char*> {};

// The yardstick is the oracle's own: how far its logits move when the inputs of its products are rounded to
// int8 per group of 32, as ours are. Both are the same noise over some thousand logits, so their sizes are
// near each other; half as much again is the bound. A wrong rotation, mask, bias or norm is ten times further
// away.
TEST_P(NativeModels, LogitsLieAsNearTheOracleAsItsOwnWithInt8Activations) {
  const GoldenCase golden = tiny(GetParam());
  const auto model = open_native(golden.model);
  const mx::array rounded = read_expected(
      std::filesystem::path(GODWIT_GOLDEN_FOLDER) / GetParam() / "expected.safetensors", "int8_activations");
  const std::vector<float> yard(rounded.data<float>(), rounded.data<float>() + rounded.size());
  for (const Plan& plan : golden.plans) {
    if (plan.name != "stepwise") continue;
    const double bound = 1.5 * distance(yard, plan.logits).error;
    const Distance d = distance(native_plan(*model, golden.tokens, plan.spans), plan.logits);
    std::cout << "relative error " << d.error / d.spread << ", bound " << bound / d.spread << "\n";
    EXPECT_LT(d.error, bound);
    EXPECT_LT(bound, 0.25 * d.spread);
    EXPECT_GT(d.error, 0);  // equal bits would mean that `reference` ran
    return;
  }
  FAIL() << "no plan stepwise";
}

TEST_P(NativeModels, TheBitsDoNotDependOnChunksThreadsOrLevel) {
  const GoldenCase golden = tiny(GetParam());
  const auto model = open_native(golden.model, {.threads = 1});
  const std::vector<int> tokens = long_prompt(*model, 90);
  const std::vector<int> whole = {90}, single(90, 1);
  const std::vector<float> expected = native_plan(*model, tokens, whole);
  ASSERT_TRUE(std::isfinite(std::accumulate(expected.begin(), expected.end(), 0.0)));
  EXPECT_EQ(native_plan(*model, tokens, single), expected);
  constexpr unsigned kSeed = 5;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 3; ++round)
    EXPECT_EQ(native_plan(*model, tokens, spans_of(tokens.size(), random)), expected) << "seed " << kSeed;
  for (const kernels::Level level : kernels::runnable_levels())
    for (const int threads : {1, 2, 3}) {
      if (level == kernels::Level::scalar && threads == 2) continue;  // slow
      SCOPED_TRACE(std::string(kernels::level_name(level)) + " " + std::to_string(threads));
      const auto other = open_native(golden.model, {.threads = threads, .level = level});
      EXPECT_EQ(other->runtime->kernels.level, level);
      EXPECT_EQ(native_plan(*other, tokens, whole), expected);
      EXPECT_EQ(native_plan(*other, tokens, spans_of(tokens.size(), random)), expected);
    }
}

// A context of sixteen blocks and more is shared out among threads by blocks.
TEST(NativeMode, ALongContextHasTheSameBitsOnOneThreadAndOnTwo) {
  const GoldenCase golden = tiny("gguf-gemma3-q4_k_m");
  const auto one = open_native(golden.model, {.threads = 1}), two = open_native(golden.model, {.threads = 2});
  const std::vector<int> tokens = long_prompt(*one, 1100), spans = {1098, 1, 1};
  const auto last = [&](const models::ModelBundle& model) {
    return last_rows(model, native_plan(model, tokens, spans), 2);
  };
  EXPECT_EQ(last(*one), last(*two));
}

TEST_P(NativeModels, RowsOfOneStepHaveTheBitsTheyHaveAlone) {
  const GoldenCase golden = tiny(GetParam());
  const auto model = open_native(golden.model);
  const std::vector<int> a = long_prompt(*model, 70, 1), b = long_prompt(*model, 9, 2),
                         c = long_prompt(*model, 1, 3);
  cache::Row rows[] = {model->store->create(), model->store->create(), model->store->create()};
  std::vector<int> all;
  std::vector<float> expected;
  const std::vector<int>* prompts[] = {&a, &b, &c};
  std::vector<cache::RowSpan> spans;
  for (int i = 0; i < 3; ++i) {
    cache::Row alone = model->store->create();
    const auto logits = native_forward(*model, alone, *prompts[i]);
    expected.insert(expected.end(), logits.begin(), logits.end());
    all.insert(all.end(), prompts[i]->begin(), prompts[i]->end());
    spans.push_back({&rows[i], static_cast<int>(prompts[i]->size())});
  }
  EXPECT_EQ(native_step(*model, spans, all), expected);
  EXPECT_EQ(rows[0].position(), 70);
  EXPECT_EQ(rows[2].position(), 1);
}

// Both rows go on after the fork, in blocks that they shared: neither sees what the other stores.
TEST_P(NativeModels, AForkAndATruncatedRowGoOnAsAFreshRowWould) {
  const GoldenCase golden = tiny(GetParam());
  const auto model = open_native(golden.model);
  const std::vector<int> tokens = long_prompt(*model, 140, 1), other = long_prompt(*model, 30, 2);
  const std::span<const int> all(tokens);
  // Windows of 8 keep whole blocks, so a cut of at most 64 - 8 tokens behind a block's border is always
  // there.
  for (const int cut : {100, 128, 137}) {
    SCOPED_TRACE(cut);
    std::vector<int> joined(tokens.begin(), tokens.begin() + cut);
    joined.insert(joined.end(), other.begin(), other.end());
    const std::vector<int> spans = {cut, 30};
    const auto expected = last_rows(*model, native_plan(*model, joined, spans), 30);
    const std::vector<int> straight = {cut, 140 - cut};
    const auto unforked =
        last_rows(*model, native_plan(*model, tokens, straight), static_cast<std::size_t>(140 - cut));

    cache::Row row = model->store->create();
    native_forward(*model, row, all.subspan(0, static_cast<std::size_t>(cut)));
    cache::Row fork = row.fork(cut);
    EXPECT_EQ(native_forward(*model, row, all.subspan(static_cast<std::size_t>(cut))), unforked);
    EXPECT_EQ(native_forward(*model, fork, other), expected);
    std::vector<int> longer = tokens;
    longer.insert(longer.end(), other.begin(), other.end());
    const std::vector<int> both = {140, 30};
    EXPECT_EQ(native_forward(*model, row, other), last_rows(*model, native_plan(*model, longer, both), 30));
    if (cut < row.minimum_reusable_length()) {  // a sliding layer has given the blocks back
      EXPECT_THROW(row.truncate(cut), Error);
      continue;
    }
    row.truncate(cut);
    EXPECT_EQ(native_forward(*model, row, other), expected);
  }
}

TEST_P(NativeModels, AStepThatFailsOrIsNotPublishedLeavesTheRowAsItWas) {
  const GoldenCase golden = tiny(GetParam());
  const auto model = open_native(golden.model);
  const std::vector<int> tokens = long_prompt(*model, 100), wrong = {3, model->vocabulary, 5},
                         lost = long_prompt(*model, 60, 8), spans = {70, 30};
  const auto expected = last_rows(*model, native_plan(*model, tokens, spans), 30);
  cache::Row row = model->store->create();
  native_forward(*model, row, std::span(tokens).first(70));
  const std::size_t bytes = row.bytes();
  EXPECT_THROW(native_forward(*model, row, wrong), Error);
  const cache::RowSpan span{&row, 60};
  native_step(*model, {&span, 1}, lost, /*publish=*/false);
  EXPECT_EQ(row.position(), 70);
  EXPECT_EQ(row.bytes(), bytes);
  EXPECT_EQ(native_forward(*model, row, std::span(tokens).subspan(70)), expected);
}

INSTANTIATE_TEST_SUITE_P(Tiny, NativeModels, testing::ValuesIn(kCases), [](const auto& instance) {
  std::string name = instance.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(NativeMode, AFormatWithoutAPackedLayoutIsNamedWithItsTensor) {
  for (const auto& [name, format] :
       {std::pair("gguf-llama-f16", "F16"), std::pair("gguf-qwen3-q5_k_m", "Q5_K"),
        std::pair("gguf-qwen2-q5", "Q5_1")}) {
    try {
      open_native(tiny(name).model);
      ADD_FAILURE() << name << " was opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      const std::string message = error.what();
      EXPECT_NE(message.find(std::string(" is ") + format), std::string::npos) << message;
      EXPECT_NE(message.find("tensor "), std::string::npos) << message;
    }
  }
}

TEST(NativeMode, SlidingLayersGiveBackTheBlocksThatNoQueryCanSee) {
  const auto model = open_native(tiny("gguf-gemma3-q4_k_m").model);
  const std::vector<int> tokens = long_prompt(*model, 640), spans = {640};
  cache::Row row = model->store->create();
  native_forward(*model, row, tokens);
  const std::size_t block = 2 * 2 * 64 * 64 * sizeof(float);  // K and V, 2 heads of 64, 64 positions
  // Of seven layers every third is full: two with ten blocks; the others keep the one that the window of 8
  // reaches into.
  EXPECT_EQ(row.bytes(), (2 * 10 + 5 * 1) * block);
  EXPECT_EQ(row.minimum_reusable_length(), 9 * 64 + 7);
}

TEST(NativeMode, MlxsEvaluatorRefusesItsNodes) {
  const auto model = open_native(tiny("gguf-llama-q4_0").model);
  mx::array logits = model->graph->logits(mx::zeros({1, model->config.hidden}));
  EXPECT_THROW(logits.eval(), Error);
}

// A graph with a node of MLX's is refused by name, not run.
TEST(NativeMode, AForeignNodeIsNamed) {
  const auto model = open_native(tiny("gguf-llama-q4_0").model);
  cache::Row row = model->store->create();
  const cache::RowSpan span{&row, 1};
  cache::Step step = model->store->plan({&span, 1});
  const mx::array hidden = model->graph->hidden(mx::array({1}), step);
  try {
    model->executor->run(model->graph->logits(mx::multiply(hidden, hidden)));
    ADD_FAILURE() << "a foreign node ran";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("Multiply"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace godwit::oracle
