// /v1/completions through dispatch(): batches beside each other, ranking, gaps.
#include "support/dispatch_fixture.h"

namespace godwit::serve {
namespace {

using decode::FinishReason;

constexpr auto kPath = "/v1/completions";

struct CompletionsTest : DispatchFixture {
  static std::vector<std::string> texts_of(const Json& answer) {
    std::vector<std::string> texts;
    for (const Json& choice : answer["choices"]) {
      EXPECT_EQ(choice["index"], texts.size());
      texts.push_back(choice["text"]);
    }
    return texts;
  }
  // An answer whose tokens all have this log-probability.
  ScriptedGenerator::Script rated(std::string_view text, double logprob) {
    auto script = spelled(text, FinishReason::stop);
    for (decode::TokenEvent& event : script) event.logprob->logprob = logprob;
    return script;
  }
};

TEST_F(CompletionsTest, PromptsOfABatchRunBesideEachOther) {
  play({"aaaa", "b", "cc"});
  const Collector sink = stream_of({{"prompt", {"x", "y", "z"}}}, kPath);
  EXPECT_EQ(generator.requests.size(), 3u);
  std::string order;
  std::vector<std::string> texts(3);
  for (std::size_t i = 0; i + 1 < sink.events.size(); ++i) {
    const Json choice = sink.json(i)["choices"][0];
    if (choice["text"] == "") continue;
    order += choice["text"];
    texts[choice["index"].get<std::size_t>()] += choice["text"];
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"aaaa", "b", "cc"}));
  EXPECT_NE(order, "aaaabcc") << "answers come as they are made";
}

TEST_F(CompletionsTest, ABatchGoesAsFarAsTheQueueHasRoom) {
  Json prompts = Json::array();
  std::vector<std::string> want;
  for (int i = 0; i < 100; ++i) {
    prompts.push_back(fmt::format("p{}", i));
    want.push_back(fmt::format("answer {}", i));
  }
  play(want);
  int looks = 0;
  on_wait = [&] { generator.refusals = ++looks % 3 == 0 ? 5 : 0; };
  EXPECT_EQ(texts_of(json_of(post(kPath, {{"prompt", prompts}}))), want);
  EXPECT_EQ(generator.requests.size(), 100u);
  for (const auto& made : generator.requests)
    EXPECT_EQ(made.sampling.seed.value_or(77), 77u) << "one seed for all";
}

TEST_F(CompletionsTest, TheBestOfSeveralAnswersAreReturned) {
  generator.scripts = {rated("a", -3), rated("b", -1), rated("cc", -0.5)};
  const Json answer = json_of(post(kPath, {{"prompt", "x"}, {"best_of", 3}, {"n", 2}}));
  EXPECT_EQ(texts_of(answer), (std::vector<std::string>{"cc", "b"}));
  EXPECT_TRUE(answer["choices"][0]["logprobs"].is_null()) << "nobody asked to see them";
  EXPECT_EQ(answer["usage"]["completion_tokens"], 4) << "all that was made";
  generator.scripts = {rated("a", -2), rated("b", -1), rated("c", -1), rated("d", -2)};
  EXPECT_EQ(texts_of(json_of(post(kPath, {{"prompt", {"x", "y"}}, {"best_of", 2}}))),
            (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(refusal_of(post(kPath, {{"prompt", "x"}, {"best_of", 2}, {"stream", true}})),
            "400 best_of invalid_value");
  EXPECT_EQ(refusal_of(post(kPath, {{"prompt", "x"}, {"best_of", 1}, {"n", 2}})),
            "400 best_of invalid_value");
}

TEST_F(CompletionsTest, AGapIsFilledWhereTheVocabularyHasMarksForIt) {
  EXPECT_EQ(refusal_of(post(kPath, {{"prompt", "x"}, {"suffix", "y"}})), "400 suffix unsupported_parameter");
  const text::Tokenizer marked = testing::byte_tokenizer(
      {"<|im_start|>", "<|im_end|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"});
  model.tokenizer = &marked;
  play({"mid"});
  EXPECT_EQ(texts_of(json_of(post(kPath, {{"prompt", "a"}, {"suffix", "b"}}))),
            std::vector<std::string>{"mid"});
  EXPECT_EQ(generator.requests[0].prompt, (std::vector<int>{258, 'a', 259, 'b', 260}));
  EXPECT_EQ(refusal_of(post(kPath, {{"prompt", "x"}, {"suffix", "y"}, {"echo", true}})),
            "400 echo invalid_value");
}

TEST_F(CompletionsTest, TokenIdsComeWhenTheyAreAskedFor) {
  play({"ab", "ab"});
  const Json body{{"prompt", "xy"}, {"return_token_ids", true}};
  const Json whole = json_of(post(kPath, body))["choices"][0];
  EXPECT_EQ(whole["prompt_token_ids"], Json({'x', 'y'}));
  EXPECT_EQ(whole["token_ids"], Json({'a', 'b'}));
  const Collector sink = stream_of(body, kPath);
  Json ids = Json::array();
  for (std::size_t i = 0; i + 1 < sink.events.size(); ++i)
    for (const Json& id : sink.json(i)["choices"][0].value("token_ids", Json::array())) ids.push_back(id);
  EXPECT_EQ(ids, whole["token_ids"]);
  EXPECT_EQ(sink.json(0)["choices"][0]["prompt_token_ids"], whole["prompt_token_ids"]);
}

TEST_F(CompletionsTest, FieldsReachTheEngine) {
  play({"ok"});
  json_of(post(
      kPath,
      {{"prompt", "x"}, {"stop_token_ids", {7}}, {"min_tokens", 1}, {"include_stop_str_in_output", true}}));
  EXPECT_EQ(generator.requests[0].stop_token_ids, std::vector{7});
  EXPECT_EQ(generator.requests[0].min_tokens, 1);
  EXPECT_TRUE(generator.requests[0].include_stop_text);
}

}  // namespace
}  // namespace godwit::serve
