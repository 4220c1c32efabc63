// `native` mode on tiny GGUF files and affine checkpoints and on SmolLM2: near the oracle, whose bits
// `reference` mode has, and with bits of its own that depend on nothing but the model and the tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <stdexcept>

#include "base/error.h"
#include "base/mx_ops.h"
#include "oracle/golden_case.h"
#include "oracle/golden_run.h"
#include "oracle/native_run.h"

namespace godwit::oracle {
namespace {

// Family and case. The GGUF files hold blocks unless they say otherwise.
constexpr const char* kCases[] = {
    "llama/gguf-llama-q4_0",
    "llama/gguf-llama-q4_1",
    "llama/gguf-llama-q4_k_m",
    "llama/gguf-llama-rope-factors",
    "qwen2/gguf-qwen2-q4_k_m",
    "qwen3/gguf-qwen3-q4_k_m",
    "gemma3_text/gguf-gemma3-q4_k_m",
    "gemma3_text/gguf-gemma3-q8_0",
    "qwen2/gguf-qwen2-q5",
    "qwen3/gguf-qwen3-q5_k_m",
    // Affine: 4 and 8 bits, groups of 32, 64 and 128, scales f32, f16 and bf16; tied heads and biases.
    "llama/llama-f32-q4",
    "llama/llama-biased-bf16-q8",
    "llama/llama-wide-f32-groups",
    "llama/llama-wide-f16-groups",
    "llama/llama-wide-bf16-groups",
    // 2, 3, 5 and 6 bits in the same three groups and types of scales.
    "llama/llama-wide-f32-widths",
    "llama/llama-wide-f16-widths",
    "llama/llama-wide-bf16-widths",
    // E2M1 with an exponent for 32; Q2_K, Q3_K, IQ4_NL, IQ4_XS and MXFP4 in one file.
    "llama/llama-bf16-mxfp4",
    "qwen3/qwen3-f16-mxfp4",
    "gemma3_text/gemma3_text-f32-mxfp4",
    "qwen3/gguf-qwen3-rare",
    // Affine of six widths, mxfp4 and numbers side by side.
    "llama/llama-bf16-mixed",
    "qwen2/qwen2-bf16-mixed",
    "qwen2/qwen2-bf16-q4",
    "qwen2/qwen2-f16-q8",
    "qwen3/qwen3-f16-q4",
    "qwen3/qwen3-f32-q8",
    "qwen3/qwen3-sharded-bf16-q4",
    "gemma3_text/gemma3_text-bf16-q4",
    "gemma3_text/gemma3_text-f32-q8",
    // Numbers of 16 bits, which meet f32 activations.
    "llama/gguf-llama-f16",
    "llama/gguf-llama-bf16",
    "llama/llama-bf16-dense",
    "qwen2/qwen2-f16-dense",
    "qwen3/qwen3-bf16-dense",
    "gemma3_text/gemma3_text-bf16-dense",
    // Experts: stacked or one tensor each, shares that are renormalized or not, layers without experts between.
    "qwen3_moe/gguf-qwen3_moe-q4_k_m",
    "qwen3_moe/gguf-qwen3_moe-bf16",
    "qwen3_moe/qwen3_moe-f32-q4",
    "qwen3_moe/qwen3_moe-bf16-q4",
    "qwen3_moe/qwen3_moe-f16-q4",
    "qwen3_moe/qwen3_moe-plain-bf16-q4",
    "qwen3_moe/qwen3_moe-bf16-q8",
    "qwen3_moe/qwen3_moe-bf16-dense",
    "qwen3_moe/qwen3_moe-f16-dense",
    "qwen3_moe/qwen3_moe-plain-bf16-dense",
    // Gated delta layers between gated attention: projections flat, with tiled value heads whose gates are numbers, and
    // grouped by key head; with experts and a shared one.
    "qwen3_5/qwen3_5-bf16-q4",
    "qwen3_5/gguf-qwen3_5-q6_k",
    "qwen3_5_moe/qwen3_5_moe-f32-q4",
    "qwen3_next/qwen3_next-f16-q8",
};
// Of other formats, whose kernels are those of the cases above: not run at every level.
constexpr const char* kMoreHybrids[] = {
    "qwen3_5/qwen3_5-f16-q4",
    "qwen3_5/qwen3_5-bf16-q8",
    "qwen3_5/qwen3_5-bf16-mixed",
    "qwen3_5/qwen3_5-f16-mxfp4",
    "qwen3_5/qwen3_5-nested-bf16-q4",
    "qwen3_5/qwen3_5-bf16-dense",  // as its author writes it, with the multi-token head
    "qwen3_5/gguf-qwen3_5-grouped-f16",
    "qwen3_5/gguf-qwen3_5-q4_k_m",
    "qwen3_5/gguf-qwen3_5-narrow",
    "qwen3_5_moe/qwen3_5_moe-bf16-q8",
    "qwen3_5_moe/qwen3_5_moe-bf16-mxfp4",
    "qwen3_5_moe/qwen3_5_moe-plain-bf16-q4",
    "qwen3_5_moe/qwen3_5_moe-bf16-dense",
    "qwen3_5_moe/gguf-qwen3_5_moe-q8_0",
    "qwen3_5_moe/gguf-qwen3_5_moe-q4_k_m",
    "qwen3_next/qwen3_next-f32-q4",
    "qwen3_next/qwen3_next-plain-bf16-q4",
    "qwen3_next/qwen3_next-bf16-dense",
    "qwen3_next/gguf-qwen3_next-q4_k_m",
};

std::vector<const char*> all_cases() {
  std::vector<const char*> all(std::begin(kCases), std::end(kCases));
  all.insert(all.end(), std::begin(kMoreHybrids), std::end(kMoreHybrids));
  return all;
}

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

std::vector<float> floats(const mx::array& logits) {
  mx::array wide = mx::contiguous(mx::astype(logits, mx::float32));
  wide.eval();
  return {wide.data<float>(), wide.data<float>() + wide.size()};
}

Distance distance(const std::vector<float>& actual, const mx::array& expected) {
  const std::vector<float> want = floats(expected);
  double error = 0, sum = 0, squares = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    error += std::pow(double{actual[i]} - want[i], 2);
    sum += want[i];
    squares += double{want[i]} * want[i];
  }
  const auto n = static_cast<double>(actual.size());
  return {std::sqrt(error / n), std::sqrt(squares / n - sum / n * (sum / n))};
}

// Of each token the error, as above.
std::vector<double> token_errors(const std::vector<float>& actual, const mx::array& expected) {
  const std::vector<float> want = floats(expected);
  const auto width = static_cast<std::size_t>(expected.shape(1));
  std::vector<double> errors(actual.size() / width);
  for (std::size_t i = 0; i < actual.size(); ++i) errors[i / width] += std::pow(double{actual[i]} - want[i], 2);
  for (double& error : errors) error = std::sqrt(error / static_cast<double>(width));
  return errors;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

const Plan& stepwise_plan(const GoldenCase& golden) {
  const auto found = std::ranges::find(golden.plans, "stepwise", &Plan::name);
  if (found == golden.plans.end()) throw std::runtime_error("no plan stepwise in " + golden.model.string());
  return *found;
}

// The oracle with int8 activations.
std::vector<float> yardstick(const std::string& name) {
  return floats(read_expected(std::filesystem::path(GODWIT_GOLDEN_FOLDER) / name / "expected.safetensors", "int8_activations"));
}

bool has_recurrence(const std::string& name) {
  return name.starts_with("qwen3_5/") || name.starts_with("qwen3_5_moe/") || name.starts_with("qwen3_next/");
}

// Whether a few tokens fall either way under any rounding: those between two experts that nearly tie, and those for
// which a recurrence gives next to nothing, whose direction its own norm then makes as large as any other.
bool has_touchy_tokens(const std::string& name) { return name.starts_with("qwen3_moe/") || has_recurrence(name); }

class NativeModels : public testing::TestWithParam<const char*> {};
class NativeBits : public testing::TestWithParam<const char*> {};

// The yardstick is the oracle's own: how far its logits move when the inputs of its products are rounded to
// int8 per group of 16, as ours are. Both are the same noise over some thousand logits, so their sizes are
// near each other; half as much again is the bound. A wrong rotation, mask, bias or norm is ten times further
// away. Models with touchy tokens are compared in their median token, all of them together below. With a recurrence the
// yardstick itself is long in tiny models of many layers; a wrong graph of those is seen with f32 activations.
TEST_P(NativeModels, LogitsLieAsNearTheOracleAsItsOwnWithInt8Activations) {
  const GoldenCase golden = tiny(GetParam());
  const auto model = open_native(golden.model);
  const Plan& plan = stepwise_plan(golden);
  const auto error = [&](const std::vector<float>& logits) {
    return has_touchy_tokens(GetParam()) ? median(token_errors(logits, plan.logits)) : distance(logits, plan.logits).error;
  };
  const std::vector<float> got = native_plan(*model, golden.tokens, plan.spans);
  const double bound = 1.5 * error(yardstick(GetParam())), spread = distance(got, plan.logits).spread;
  std::cout << "relative error " << error(got) / spread << ", bound " << bound / spread << "\n";
  EXPECT_LT(error(got), bound);
  if (!has_recurrence(GetParam())) {
    EXPECT_LT(bound, 0.25 * spread);
  }
  EXPECT_GT(error(got), 0);  // equal bits would mean that `reference` ran
}

// What touchy tokens add is too rare to compare in one case: over all of them, the whole of both.
TEST(NativeMode, ModelsWithTouchyTokensLieTogetherAsNearTheOracleAsItsOwnWithInt8Activations) {
  double ours = 0, yards = 0;
  int cases = 0;
  for (const std::string name : all_cases()) {
    if (!has_touchy_tokens(name) || name.ends_with("dense") || name.ends_with("16")) continue;  // nothing of those is int8
    const GoldenCase golden = tiny(name);
    const Plan& plan = stepwise_plan(golden);
    const Distance own = distance(native_plan(*open_native(golden.model), golden.tokens, plan.spans), plan.logits);
    const Distance yard = distance(yardstick(name), plan.logits);
    std::cout << name << ": relative error " << own.error / own.spread << ", yardstick "
              << yard.error / yard.spread << "\n";
    ours += std::pow(own.error / own.spread, 2);
    yards += std::pow(yard.error / yard.spread, 2);
    ++cases;
  }
  ASSERT_GT(cases, 4);
  EXPECT_LT(std::sqrt(ours), 1.5 * std::sqrt(yards));
}

// Of weights that are numbers nothing is rounded but f32 sums. Each layer makes eight of them in a
// row, over at most 128 terms with an error of 2^-24 for each; what the residual stream holds besides only
// shrinks their share.
TEST(NativeMode, NumbersOf16BitsLeaveNothingButTheRoundingOfF32) {
  for (const char* name : {"llama/llama-bf16-dense", "llama/llama-f16-dense", "qwen2/qwen2-bf16-dense",
                           "qwen2/qwen2-f16-dense", "qwen3/qwen3-bf16-dense", "qwen3/qwen3-f16-dense",
                           "qwen3_moe/qwen3_moe-bf16-dense", "qwen3_moe/qwen3_moe-f16-dense",
                           "qwen3_moe/qwen3_moe-plain-bf16-dense", "qwen3_5/qwen3_5-bf16-dense",
                           "qwen3_5/qwen3_5-f16-dense", "qwen3_5_moe/qwen3_5_moe-bf16-dense",
                           "qwen3_5_moe/qwen3_5_moe-plain-f16-dense", "qwen3_next/qwen3_next-bf16-dense",
                           "qwen3_next/qwen3_next-f16-dense"}) {
    const GoldenCase golden = tiny(name);
    const mx::array wide = read_expected(
        std::filesystem::path(GODWIT_GOLDEN_FOLDER) / name / "expected.safetensors", "in_float32");
    const std::vector<int> single(static_cast<std::size_t>(wide.shape(0)), 1);
    const auto model = open_native(golden.model);
    const Distance d = distance(native_plan(*model, golden.tokens, single), wide);
    std::cout << name << ": relative error " << d.error / d.spread << "\n";
    EXPECT_LT(d.error, model->config.layers * 8 * 128 * 0x1p-24 * d.spread) << name;
  }
}

// The same where weights are codes and activations f32: the oracle's f32 logits of the same values, which a GGUF file's
// twin in mlx-lm has in any case. A sum is over at most as many terms as the wider of two layers has inputs.
TEST_P(NativeModels, F32ActivationsLeaveNothingButTheRoundingOfF32) {
  const std::string name = GetParam();
  const bool rounds_norms = name.starts_with("gemma3_text/gemma3_text-bf16");  // 1 + w in the checkpoint's bf16
  const GoldenCase golden = tiny(name);
  const auto model = open_native(golden.model, {.activations = kernels::ActivationForm::f32});
  EXPECT_NE(model->fidelity()->figures.find("f32 activations"), std::string::npos);
  const auto stepwise = std::ranges::find(golden.plans, "stepwise", &Plan::name);
  ASSERT_NE(stepwise, golden.plans.end());
  const mx::array wide = model->config.from_gguf
                             ? stepwise->logits
                             : read_expected(std::filesystem::path(GODWIT_GOLDEN_FOLDER) / GetParam() /
                                                 "expected.safetensors",
                                             "in_float32");
  ASSERT_EQ(wide.dtype(), mx::float32);
  const Distance d = distance(native_plan(*model, golden.tokens, stepwise->spans), wide);
  const bool has_mlp = !name.starts_with("qwen3_5_moe/");  // without one a config names no width of it
  const double terms = std::max<std::int64_t>(model->config.hidden, has_mlp ? model->config.intermediate
                                                                            : model->config.integer("moe_intermediate_size"));
  const double bound = model->config.layers * 8 * terms * 0x1p-24 * d.spread;
  std::cout << "relative error " << d.error / d.spread << ", bound " << bound / d.spread << "\n";
  if (rounds_norms) {
    EXPECT_GT(d.error, bound) << "it would be as near as the others";
    return;
  }
  EXPECT_LT(d.error, bound);
  if (name.find("dense") == std::string::npos && !name.ends_with("f16")) {  // numbers meet f32 in any case
    const auto plain = open_native(golden.model);
    EXPECT_GT(distance(native_plan(*plain, golden.tokens, stepwise->spans), wide).error, bound);
  }
}

// A weight of Q8_0 is rounded as an int8 activation is, to 127 steps of the largest, if of 32 instead of 16: an error 1.12 times
// as large where numbers are normal, which the half as much again covers. The two errors of a product are independent and of
// about one size, so the yardstick of the activations grows by the root of two.
TEST(NativeMode, WeightsQuantizedOnLoadLieAsNearTheOracleAsTheirRoundingSays) {
  for (const char* name : {"llama/llama-bf16-dense", "qwen2/qwen2-f16-dense", "qwen3/qwen3-bf16-dense",
                           "gemma3_text/gemma3_text-bf16-dense"}) {
    const GoldenCase golden = tiny(name);
    const auto model = open_native(golden.model, {.quantize_on_load = kernels::BlockFormat::q8_0});
    EXPECT_NE(model->fidelity()->figures.find("Q8_0"), std::string::npos);
    const auto plain = open_native(golden.model);
    const std::vector<float> yard = floats(
        read_expected(std::filesystem::path(GODWIT_GOLDEN_FOLDER) / name / "expected.safetensors", "int8_activations"));
    const auto stepwise = std::ranges::find(golden.plans, "stepwise", &Plan::name);
    ASSERT_NE(stepwise, golden.plans.end());
    const std::vector<float> got = native_plan(*model, golden.tokens, stepwise->spans);
    const Distance d = distance(got, stepwise->logits);
    const double bound = 1.5 * std::sqrt(2.0) * distance(yard, stepwise->logits).error;
    std::cout << name << ": relative error " << d.error / d.spread << ", bound " << bound / d.spread << "\n";
    EXPECT_LT(d.error, bound) << name;
    EXPECT_GT(d.error, distance(native_plan(*plain, golden.tokens, stepwise->spans), stepwise->logits).error) << name;
    const int count = std::accumulate(stepwise->spans.begin(), stepwise->spans.end(), 0);
    EXPECT_EQ(native_plan(*model, golden.tokens, std::vector<int>(static_cast<std::size_t>(count), 1)), got) << name;
  }
}

TEST(NativeMode, QuantizingOnLoadIsRefusedWhereItWouldDoNothing) {
  const auto refused = [](const char* name, std::optional<NumericMode> mode) {
    models::ModelOptions options;
    options.path = tiny(name).model;
    options.mode = mode;
    options.quantize_on_load = kernels::BlockFormat::q8_0;
    try {
      models::ModelBundle::open(options, Log());
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("opened");
  };
  EXPECT_NE(refused("llama/gguf-llama-q4_0", std::nullopt).find("nothing to quantize"), std::string::npos);
  EXPECT_NE(refused("llama/llama-bf16-dense", NumericMode::reference).find("not for reference"), std::string::npos);
}

TEST(NativeMode, ActivationsAreNoChoiceOfReference) {
  for (const auto form : {kernels::ActivationForm::int8, kernels::ActivationForm::f32}) {
    models::ModelOptions options;
    options.path = tiny("llama/gguf-llama-q4_0").model;
    options.mode = NumericMode::reference;
    options.activations = form;
    try {
      models::ModelBundle::open(options, Log());
      ADD_FAILURE() << "opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("reference"), std::string::npos) << error.what();
    }
    // Said with `auto`, it is an error where native cannot serve, not an answer of the other arithmetic.
    options.path = tiny("llama/gguf-llama-f32").model;
    options.mode.reset();
    EXPECT_THROW(models::ModelBundle::open(options, Log()), Error);
  }
}

void expect_one_answer(const GoldenCase& golden, kernels::ActivationForm activations) {
  const auto model = open_native(golden.model, {.threads = 1, .activations = activations});
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
      const auto other =
          open_native(golden.model, {.threads = threads, .level = level, .activations = activations});
      EXPECT_EQ(other->runtime->kernels.level, level);
      EXPECT_EQ(native_plan(*other, tokens, whole), expected);
      EXPECT_EQ(native_plan(*other, tokens, spans_of(tokens.size(), random)), expected);
    }
}

TEST_P(NativeBits, DoNotDependOnChunksThreadsOrLevel) {
  for (const auto form : {kernels::ActivationForm::int8, kernels::ActivationForm::f32}) {
    SCOPED_TRACE(models::name_of(form));
    expect_one_answer(tiny(GetParam()), form);
  }
}

// A context of sixteen blocks and more is shared out among threads by blocks.
TEST(NativeMode, ALongContextHasTheSameBitsOnOneThreadAndOnTwo) {
  const GoldenCase golden = tiny("gemma3_text/gguf-gemma3-q4_k_m");
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

// Single tokens past every window and a block's end, and a chunk, by the plan and by the graph it was recorded from.
TEST_P(NativeModels, APlanHasTheBitsOfTheGraph) {
  const GoldenCase golden = tiny(GetParam());
  for (const auto form : {kernels::ActivationForm::int8, kernels::ActivationForm::f32}) {
    const auto planned = open_native(golden.model, {.activations = form, .plan = models::PlanUse::required});
    const auto plain = open_native(golden.model, {.activations = form, .plan = models::PlanUse::off});
    EXPECT_EQ(planned->specialization(), models::Specialization::generated);
    EXPECT_EQ(plain->plan, nullptr);
    const std::vector<int> tokens = long_prompt(*planned, 95);
    std::vector<int> spans(76, 1);
    spans[3] = 20;
    const std::vector<float> got = native_plan(*planned, tokens, spans), wanted = native_plan(*plain, tokens, spans);
    ASSERT_EQ(got.size(), wanted.size());
    EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.size() * sizeof(float)), 0) << models::name_of(form);
    EXPECT_EQ(planned->executor->counts().planned, 76);
    EXPECT_EQ(plain->executor->counts().planned, 0);
  }
}

std::string name_of(const testing::TestParamInfo<const char*>& instance) {
  std::string name = instance.param;
  std::ranges::replace(name, '-', '_');
  std::ranges::replace(name, '/', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Tiny, NativeModels, testing::ValuesIn(all_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Tiny, NativeBits, testing::ValuesIn(kCases), name_of);

TEST(NativeMode, AFormatWithoutAPackedLayoutIsNamedWithItsTensor) {
  for (const auto& [name, format] :
       {std::pair("llama/gguf-llama-f32", "F32"), std::pair("llama/llama-f32-dense", "F32"),
        std::pair("llama/llama-f32-mixed", "F32"), std::pair("llama/llama-biased-bf16-nvfp4", "nvfp4"),
        std::pair("qwen3_5/gguf-qwen3_5-f32", "F32"), std::pair("qwen3_moe/gguf-qwen3_moe-f32", "F32"), std::pair("qwen3_moe/qwen3_moe-f32-nvfp4", "nvfp4")}) {
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
  const auto model = open_native(tiny("gemma3_text/gguf-gemma3-q4_k_m").model);
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
  const auto model = open_native(tiny("llama/gguf-llama-q4_0").model);
  mx::array logits = model->graph->logits(mx::zeros({1, model->config.hidden}));
  EXPECT_THROW(logits.eval(), Error);
}

// A graph with a node of MLX's is refused by name, not run.
TEST(NativeMode, AForeignNodeIsNamed) {
  const auto model = open_native(tiny("llama/gguf-llama-q4_0").model);
  cache::Row row = model->store->create();
  const cache::RowSpan span{&row, 1};
  cache::Step step = model->store->plan({&span, 1});
  const mx::array hidden = model->graph->hidden(mx::array({1}), step);
  try {
    model->executor->run(model->graph->logits(mx::multiply(hidden, hidden)), step.native_layers());
    ADD_FAILURE() << "a foreign node ran";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("Multiply"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace godwit::oracle
