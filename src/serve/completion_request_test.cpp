#include "serve/completion_request.h"

#include "support/serve_fixture.h"

namespace godwit::serve {
namespace {

struct CompletionRequestTest : ServeFixture {
  CompletionRequest parse(const std::string& fields) {
    return parse_completion_request(parse_body("{" + fields + "}"), model);
  }
  std::string refusal(const std::string& fields) {
    return refusal_of([&] { parse(fields); });
  }
};

TEST_F(CompletionRequestTest, APromptComesInFourShapes) {
  using Prompts = std::vector<std::vector<int>>;
  EXPECT_EQ(parse(R"("prompt":"ab")").plan.prompts, (Prompts{{'a', 'b'}}));
  EXPECT_EQ(parse(R"("prompt":["ab","c"])").plan.prompts, (Prompts{{'a', 'b'}, {'c'}}));
  EXPECT_EQ(parse(R"("prompt":[97,98.0])").plan.prompts, (Prompts{{'a', 'b'}}));
  EXPECT_EQ(parse(R"("prompt":[[97],[98,99]])").plan.prompts, (Prompts{{'a'}, {'b', 'c'}}));
  EXPECT_EQ(parse(R"("prompt":[97,98])").prompt_texts, std::vector<std::string>{"ab"});
  EXPECT_EQ(parse(R"("prompt":"ab")").plan.common.max_tokens, 16);
}

TEST_F(CompletionRequestTest, PromptsThatAreNoneAreRefused) {
  for (const auto* prompt : {"null", "\"\"", "[]", "[[]]", "[\"a\",\"\"]", "5", "true", "{}", "[true]",
                             "[97,\"a\"]", "[258]", "[-1]", "[97.5]", "[[97],5]"})
    EXPECT_EQ(refusal(fmt::format("\"prompt\":{}", prompt)), "prompt: invalid_value") << prompt;
  EXPECT_EQ(refusal(""), "prompt: invalid_value");
}

TEST_F(CompletionRequestTest, LimitsAndLogprobsHaveTheirOwnRanges) {
  EXPECT_EQ(parse(R"("prompt":"a","max_tokens":0)").plan.common.max_tokens, 0);
  EXPECT_EQ(refusal(R"("prompt":"a","max_tokens":-1)"), "max_tokens: invalid_value");
  EXPECT_EQ(refusal(R"("prompt":"a","logprobs":21)"), "logprobs: invalid_value");
  const auto none = parse(R"("prompt":"a")").plan.common;
  const auto zero = parse(R"("prompt":"a","logprobs":0)").plan.common;
  const auto chat_form = parse(R"("prompt":"a","logprobs":true)").plan.common;
  EXPECT_FALSE(none.logprobs);
  EXPECT_TRUE(zero.logprobs);
  EXPECT_EQ(zero.top_logprobs, 0);
  EXPECT_TRUE(chat_form.logprobs);
  EXPECT_EQ(refusal(R"("prompt":"a","suffix":"b")"), "suffix: unsupported_parameter");
  EXPECT_EQ(refusal(R"("prompt":"a","best_of":1)"), "");
  EXPECT_EQ(refusal(R"("prompt":"a","best_of":3)"), "");
  EXPECT_EQ(refusal(R"("prompt":"a","n":3,"best_of":2)"), "best_of: invalid_value");
}

TEST_F(CompletionRequestTest, AFullContextIsEnoughWhenNothingIsGenerated) {
  model.context_length = 2;
  EXPECT_EQ(refusal(R"("prompt":"ab","max_tokens":0,"echo":true)"), "");
  EXPECT_EQ(refusal(R"("prompt":"ab","max_tokens":1)"), "prompt: context_length_exceeded");
  EXPECT_EQ(refusal(R"("prompt":"abc","max_tokens":0)"), "prompt: context_length_exceeded");
}

TEST_F(CompletionRequestTest, ChoicesOfAPromptKeepTheirPlaceInABatch) {
  const auto plan = parse(R"("prompt":["a","b"],"n":3,"seed":9)").plan;
  ASSERT_EQ(plan.size(), 6);
  EXPECT_EQ(plan.prompt_of(4), 1u);
  EXPECT_EQ(plan.request(1).prompt, std::vector<int>{'b'});
  EXPECT_EQ(plan.request(1).choices, 3);
  EXPECT_EQ(plan.request(1).choice, 0) << "a batch equals as many single calls";
  EXPECT_EQ(plan.prompt_tokens(), 2);
}

}  // namespace
}  // namespace godwit::serve
