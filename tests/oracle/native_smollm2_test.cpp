// `native` mode on the real SmolLM2 file: how often its first choice is the oracle's, on real text, and a
// chat answer.
#include <gtest/gtest.h>

#include <algorithm>
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
