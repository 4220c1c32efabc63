// `native` mode on the real SmolLM2 file: how often its first choice is the oracle's, on real text, and a
// chat answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "base/mx_ops.h"
#include "decode/engine.h"
#include "oracle/golden_case.h"
#include "oracle/golden_run.h"
#include "oracle/native_run.h"

namespace godwit::oracle {
namespace {

const std::filesystem::path kFolder = GODWIT_SMOLLM2_FOLDER;

Json golden() { return read_json_file(kFolder / "case.json"); }

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

template <typename T>
int largest(const T* row, int count) {
  return static_cast<int>(std::max_element(row, row + count) - row);
}

TEST(NativeSmolLm2, TheFirstChoiceIsTheOraclesAtNineteenOfTwentyPositionsOfRealText) {
  const std::filesystem::path file = golden().at("gguf").get<std::string>();
  const auto native = open_native(file);
  std::vector<int> tokens = native->need_tokenizer().encode(text_of(GODWIT_REAL_TEXT));
  ASSERT_GE(tokens.size(), 300u);
  tokens.resize(300);
  const std::vector<int> spans = {300};
  const std::vector<float> ours = native_plan(*native, tokens, spans);
  const auto reference = open_reference(file);
  const mx::array wanted = run_plan(*reference, tokens, spans);
  int equal = 0;
  for (int i = 0; i < 300; ++i) {
    const auto at = static_cast<std::size_t>(i) * static_cast<std::size_t>(native->vocabulary);
    equal += largest(ours.data() + at, native->vocabulary) ==
             largest(wanted.data<float>() + at, native->vocabulary);
  }
  std::cout << equal << " of 300 first choices are equal\n";
  EXPECT_GE(equal, 285);
}

// Nothing is rounded then but f32 sums: eight in a row in each layer, over at most 1536 terms with an error of 2^-24 each.
TEST(NativeSmolLm2, F32ActivationsLeaveNothingButTheRoundingOfF32) {
  const std::filesystem::path file = golden().at("gguf").get<std::string>();
  const auto native = open_native(file, {.activations = kernels::ActivationForm::f32});
  std::vector<int> tokens = native->need_tokenizer().encode(text_of(GODWIT_REAL_TEXT));
  tokens.resize(100);
  const std::vector<int> spans = {100};
  const std::vector<float> ours = native_plan(*native, tokens, spans);
  const auto reference = open_reference(file);
  mx::array wanted = mx::contiguous(mx::astype(run_plan(*reference, tokens, spans), mx::float32));
  wanted.eval();
  double error = 0, sum = 0, squares = 0;
  int equal = 0;
  const std::size_t width = static_cast<std::size_t>(native->vocabulary);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double want = wanted.data<float>()[i];
    error += (ours[i] - want) * (ours[i] - want);
    sum += want;
    squares += want * want;
    if (i % width == 0)
      equal += largest(ours.data() + i, native->vocabulary) == largest(wanted.data<float>() + i, native->vocabulary);
  }
  const auto n = static_cast<double>(ours.size());
  const double spread = std::sqrt(squares / n - sum / n * (sum / n));
  const double bound = 30 * 8 * 1536 * 0x1p-24;
  std::cout << "relative error " << std::sqrt(error / n) / spread << ", bound " << bound << ", " << equal
            << " of 100 first choices are equal\n";
  EXPECT_LT(std::sqrt(error / n), bound * spread);
}

std::vector<float> hidden_states(const models::ModelBundle& model, const std::vector<int>& tokens) {
  cache::Row row = model.store->create();
  const cache::RowSpan span{&row, static_cast<int>(tokens.size())};
  cache::Step step = model.store->plan({&span, 1});
  const auto values = model.forward(tokens, step, ops::StepOutput::hidden);
  return {values.begin(), values.end()};
}

// The layers of the file are Q4_1, which is affine with its scales and minimums widened: the kernels of both
// forms do the same. The embedding differs in form (Q8_0, and affine of 8 bits), not in its values, which f32
// holds exactly.
TEST(NativeSmolLm2, AnAffineCheckpointOfTheSameValuesHasTheSameBits) {
  const auto blocks = open_native(golden().at("gguf").get<std::string>()),
             planes = open_native(kFolder / "model");
  std::vector<int> tokens = blocks->need_tokenizer().encode(text_of(GODWIT_REAL_TEXT));
  tokens.resize(70);
  const std::vector<float> wanted = hidden_states(*blocks, tokens);
  EXPECT_EQ(hidden_states(*planes, tokens), wanted);
  EXPECT_GT(*std::max_element(wanted.begin(), wanted.end()), 0.1f);
}

TEST(NativeSmolLm2, AChatAnswerStartsAsTheOraclesDoesAndIsTheSameEveryTime) {
  const Json wanted = golden();
  std::vector<std::vector<int>> answers;
  for (const int threads : {1, 2}) {
    models::ModelOptions options;
    options.path = wanted.at("gguf").get<std::string>();
    options.mode.reset();  // native is the choice where it serves
    options.threads = threads;
    decode::Engine engine(options, Log());
    ASSERT_EQ(engine.model().mode, NumericMode::native);
    decode::GenerationRequest request;
    request.prompt = wanted.at("prompt").get<std::vector<int>>();
    request.max_tokens = 48;
    request.sampling.temperature = 0;
    decode::Job job = engine.submit(std::move(request));
    std::string text;
    std::vector<int>& tokens = answers.emplace_back();
    while (const auto event = job.next()) {
      if (event->id >= 0) tokens.push_back(event->id);
      text += event->text;
    }
    std::cout << text << "\n";
  }
  EXPECT_EQ(answers[0], answers[1]);
  const auto oracle = wanted.at("greedy_tokens").get<std::vector<int>>();
  ASSERT_GE(answers[0].size(), 10u);
  EXPECT_TRUE(std::equal(oracle.begin(), oracle.begin() + 10, answers[0].begin()));
}

}  // namespace
}  // namespace godwit::oracle
