// Tokens, templates and llama.cpp's own completion through dispatch().
#include "serve/dispatch.h"
#include "serve/infill_prompt.h"
#include "support/serve_fixture.h"

namespace godwit::serve {
namespace {

using decode::FinishReason;

struct UtilityRoutesTest : ServeFixture {
  Response ask(const std::string& path, const std::string& body) {
    request = {.method = "POST", .target = path, .body = body};
    request.headers.add("Host", "localhost");
    return dispatch(request, context);
  }
  Json json(const std::string& path, const std::string& body) { return Json::parse(ask(path, body).body); }
  Request request;
};

TEST_F(UtilityRoutesTest, TextsBecomeTokensInTwoShapes) {
  EXPECT_EQ(json("/tokenize", R"({"content":"hi"})"), Json::parse(R"({"tokens":[104,105]})"));
  EXPECT_EQ(json("/tokenize", R"({"content":"<|im_end|>"})")["tokens"], Json::array({kImEnd}));
  EXPECT_EQ(json("/tokenize", R"({"content":"<|im_end|>","parse_special":false})")["tokens"].size(), 10u);
  EXPECT_EQ(json("/tokenize", R"({"content":"aé","with_pieces":true})")["tokens"],
            Json::parse(R"([{"id":97,"piece":"a"},{"id":195,"piece":[195]},{"id":169,"piece":[169]}])"));
  const Json prompt = json("/tokenize", R"({"prompt":"hi","return_token_strs":true})");
  EXPECT_EQ(prompt, Json::parse(R"({"count":2,"max_model_len":512,"tokens":[104,105],"token_strs":["h","i"]})"));
  EXPECT_EQ(ask("/tokenize", "{}").status, 400);
}

TEST_F(UtilityRoutesTest, AChatHasTheTokensThatItsAnswerCounts) {
  generator.scripts = {spelled("ok", FinishReason::stop)};
  const std::string body = R"({"messages":[{"role":"user","content":"a<|im_end|>b"}]})";
  const Json used = json("/v1/chat/completions", body)["usage"];
  EXPECT_EQ(json("/tokenize", body)["count"], used["prompt_tokens"]);
  EXPECT_EQ(json("/apply-template", body)["prompt"], "<|im_start|>user\na<|im_end|>b<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(UtilityRoutesTest, TokensBecomeTextsAgain) {
  EXPECT_EQ(json("/detokenize", R"({"tokens":[104,257,105.0]})"),
            Json::parse(R"({"content":"h<|im_end|>i","prompt":"h<|im_end|>i"})"));
  EXPECT_EQ(ask("/detokenize", R"({"tokens":[999]})").status, 400);
  EXPECT_EQ(ask("/detokenize", R"({"tokens":"a"})").status, 400);
}

TEST_F(UtilityRoutesTest, ACompletionInLlamaCppsShape) {
  generator.scripts = {spelled("ok", FinishReason::stop), spelled("ok", FinishReason::length)};
  generator.scripts[0].back().stop_match = "END";
  const Json whole = json("/completion", R"({"prompt":"x","n_predict":-1,"n_probs":2})");
  EXPECT_EQ(whole["content"], "ok");
  EXPECT_EQ(whole["stop_type"], "word");
  EXPECT_EQ(whole["stopping_word"], "END");
  EXPECT_EQ(whole["completion_probabilities"][0]["top_logprobs"][1]["id"], 'o' ^ 1);
  EXPECT_EQ(generator.requests[0].max_tokens, -1);
  Collector sink;
  ask("/completion", R"({"prompt":[120],"n_predict":2,"stream":true})").events(sink);
  ASSERT_EQ(sink.events.size(), 3u);
  EXPECT_EQ(sink.json(0)["content"], "o");
  EXPECT_EQ(sink.json(1)["stop"], false);
  EXPECT_EQ(sink.json(2)["stop"], true);
  EXPECT_EQ(sink.json(2)["stop_type"], "limit");
  EXPECT_EQ(generator.requests[1].max_tokens, 2);
}

TEST_F(UtilityRoutesTest, PropertiesAreThoseOfTheModelThatIsNamed) {
  const auto get = [&](const std::string& target) {
    request = {.method = "GET", .target = target};
    request.headers.add("Host", "localhost");
    return dispatch(request, context);
  };
  model.sampling.temperature = 0.25;
  for (const auto* target : {"/props", "/props?x=1&model=org%2Ftiny"}) {
    const Json props = Json::parse(get(target).body);
    EXPECT_EQ(props["model_alias"], "org/tiny");
    EXPECT_EQ(props["default_generation_settings"]["n_ctx"], 512);
    EXPECT_EQ(props["default_generation_settings"]["params"]["temperature"], 0.25);
    EXPECT_EQ(props["chat_template"], kChatMl);
  }
  EXPECT_EQ(get("/props?model=nope").status, 404);
}

TEST_F(UtilityRoutesTest, WhatNoModelHereCanDoSaysSo) {
  EXPECT_EQ(ask("/infill", R"({"input_prefix":"a"})").status, 501);
  EXPECT_EQ(ask("/v1/rerank", R"({"query":"a","documents":["b"]})").status, 501);
}

TEST(InfillPrompt, PublishedLayouts) {
  const text::Tokenizer qwen = testing::byte_tokenizer(
      {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"});
  const auto gap = FillInMiddle::of(qwen);
  ASSERT_TRUE(gap);
  EXPECT_EQ(infill_ends(qwen), (std::vector<int>{259, 260, 261}));
  const auto spell = [&](const InfillText& text) {
    return qwen.decode(infill_prompt(text, *gap, qwen), /*skip_special_tokens=*/false);
  };
  EXPECT_EQ(spell({.prefix = "a", .suffix = "c", .middle = "b"}), "<|fim_prefix|>a<|fim_suffix|>c<|fim_middle|>b");
  EXPECT_EQ(spell({.prefix = "a", .suffix = "c", .others = {{"f", "F\n"}}}),
            "<|repo_name|>repository\n<|file_sep|>f\nF\n<|file_sep|>filename\n<|fim_prefix|>a<|fim_suffix|>c<|fim_middle|>");
  EXPECT_EQ(infill_prompt({.prefix = "<|fim_pad|>", .suffix = "<|fim_pad|>"}, *gap, qwen).size(), 3 + 2 * 11u)
      << "text that spells a token is text";
}

}  // namespace
}  // namespace godwit::serve
