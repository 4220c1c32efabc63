#include "serve/ollama_request.h"

#include <limits>

#include "support/serve_fixture.h"

namespace godwit::serve {
namespace {

struct OllamaRequestTest : ServeFixture {
  OllamaRequest chat(const std::string& more) {
    return parse_ollama_chat(Json::parse(R"({"messages":[{"role":"user","content":"hi"}])" + more + "}"), model);
  }
  OllamaRequest generate(const std::string& fields) { return parse_ollama_generate(Json::parse(fields), model); }
  std::optional<double> keep_alive(const std::string& value) { return chat(R"(,"keep_alive":)" + value).keep_alive; }
};

TEST_F(OllamaRequestTest, DefaultsAreOllamasWhereTheModelIsSilent) {
  const OllamaRequest plain = chat("");
  EXPECT_TRUE(plain.stream);
  EXPECT_EQ(plain.turn.common.max_tokens, -1);
  EXPECT_EQ(plain.turn.common.sampling.temperature, 0.8);
  EXPECT_EQ(plain.turn.common.sampling.top_k, 40);
  EXPECT_EQ(plain.turn.common.sampling.top_p, 0.9);
  EXPECT_EQ(plain.turn.common.sampling.repetition_penalty, 1.1);
  model.sampling.temperature = 0.3;
  EXPECT_EQ(chat("").turn.common.sampling.temperature, 0.3);
  EXPECT_EQ(chat(R"(,"options":{"temperature":null})").turn.common.sampling.temperature, 0.3);
  EXPECT_EQ(chat(R"(,"options":{"temperature":0})").turn.common.sampling.temperature, 0);
}

TEST_F(OllamaRequestTest, OptionsAreRead) {
  const OllamaRequest asked = chat(R"(,"stream":false,"options":{"num_ctx":1000000,"num_predict":-2,"seed":5,"num_keep":4,
      "stop":["a"],"min_p":0.5,"repeat_last_n":7,"typical_p":1.0,"mirostat":0,"num_gpu":1,"use_mmap":true})");
  EXPECT_FALSE(asked.stream);
  EXPECT_EQ(asked.turn.common.max_tokens, -1) << "num_ctx never cuts, -2 is the rest of the context";
  EXPECT_EQ(asked.turn.common.sampling.seed, 5u);
  EXPECT_EQ(asked.turn.common.stop, std::vector<std::string>{"a"});
  EXPECT_EQ(asked.turn.common.sampling.penalty_window, 7);
  EXPECT_EQ(chat(R"(,"options":{"num_predict":9.0})").turn.common.max_tokens, 9);
}

TEST_F(OllamaRequestTest, EveryLimitThatIsNoNumberOfTokensIsTheRestOfTheContext) {
  for (const auto* none : {"-1", "-2", "-3", "0", "-1e30"})
    EXPECT_EQ(chat(fmt::format(R"(,"options":{{"num_predict":{}}})", none)).turn.common.max_tokens, -1) << none;
  EXPECT_EQ(chat(R"(,"options":{"num_predict":1e30})").turn.common.max_tokens, std::numeric_limits<int>::max());
}

TEST_F(OllamaRequestTest, ResultsOfToolsFindTheirCalls) {
  const OllamaRequest asked = parse_ollama_chat(Json::parse(R"({"messages":[
    {"role":"assistant","content":"","thinking":"t","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}},
       {"function":{"name":"g","arguments":{}}},{"id":"mine","function":{"name":"f"}}]},
    {"role":"tool","tool_name":"g","content":"G"},{"role":"tool","content":"F"},{"role":"tool","tool_name":"f","content":"F2"}],
    "tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{}}}}]})"),
                                                model);
  const Json& messages = asked.turn.messages;
  EXPECT_EQ(messages[0]["reasoning_content"], "t");
  EXPECT_EQ(messages[0]["tool_calls"][0],
            Json::parse(R"({"id":"call_0","type":"function","function":{"name":"f","arguments":{"a":1}}})"));
  EXPECT_EQ(messages[1]["tool_call_id"], "call_1");
  EXPECT_EQ(messages[2]["tool_call_id"], "call_0");
  EXPECT_EQ(messages[2]["name"], "f");
  EXPECT_EQ(messages[3]["tool_call_id"], "mine");
  ASSERT_EQ(asked.turn.tools.size(), 1u);
  EXPECT_EQ(asked.turn.tools[0].name, "f");
}

TEST_F(OllamaRequestTest, FormatAndThink) {
  EXPECT_FALSE(chat(R"(,"format":"")").turn.output);
  EXPECT_EQ(chat(R"(,"format":"json")").turn.output->spec.kind, text::GrammarKind::json_object);
  EXPECT_EQ(chat(R"(,"format":{"type":"object"})").turn.output->spec.text, R"({"type":"object"})");
  EXPECT_EQ(chat("").turn.reasoning.is_on, std::nullopt);
  EXPECT_EQ(chat(R"(,"think":false)").turn.reasoning.is_on, false);
  EXPECT_EQ(chat(R"(,"think":"high")").turn.reasoning.effort, "high");
}

TEST_F(OllamaRequestTest, TimesToStayAreGoDurations) {
  EXPECT_EQ(keep_alive("\"5m\""), 300);
  EXPECT_EQ(keep_alive("\"1h30m\""), 5400);
  EXPECT_EQ(keep_alive("\"1.5s\""), 1.5);
  EXPECT_EQ(keep_alive("\"-1\""), -1);
  EXPECT_EQ(keep_alive("0"), 0);
  EXPECT_EQ(keep_alive("null"), std::nullopt);
  for (const auto* bad : {"\"\"", "\"5 m\"", "\"soon\"", "true", "[]", "\"5x\"", "\"--1\""})
    EXPECT_EQ(refusal_of([&] { keep_alive(bad); }), "keep_alive: invalid_value") << bad;
}

TEST_F(OllamaRequestTest, PromptsOfGenerate) {
  EXPECT_EQ(generate(R"({"prompt":"p","system":"s"})").turn.messages,
            Json::parse(R"([{"role":"system","content":"s"},{"role":"user","content":"p"}])"));
  EXPECT_EQ(generate(R"({"prompt":"p","raw":true})").raw_prompt, "p");
  EXPECT_TRUE(generate("{}").asks_nothing);
  for (const auto* field : {R"("suffix":"x")", R"("template":"x")", R"("context":[1])", R"("images":["x"])"})
    EXPECT_TRUE(refusal_of([&] { generate(fmt::format(R"({{"prompt":"p",{}}})", field)); }).ends_with("unsupported_parameter"));
}

TEST_F(OllamaRequestTest, WhatIsRefusedIsNamed) {
  const auto refusal = [&](const std::string& more) { return refusal_of([&] { chat(more); }); };
  EXPECT_EQ(refusal(R"(,"options":{"temperature":-1})"), "options.temperature: invalid_value");
  EXPECT_EQ(refusal(R"(,"options":{"num_predict":"5"})"), "options.num_predict: invalid_value");
  EXPECT_EQ(refusal(R"(,"options":[])"), "options: invalid_value");
  EXPECT_EQ(refusal(R"(,"format":"xml")"), "format: invalid_value");
  EXPECT_EQ(refusal(R"(,"think":"hard")"), "think: invalid_value");
  EXPECT_EQ(refusal_of([&] { parse_ollama_chat(Json::parse(R"({"messages":[{"role":"x"}]})"), model); }),
            "messages[0].role: invalid_value");
  EXPECT_EQ(refusal_of([&] {
              parse_ollama_chat(Json::parse(R"({"messages":[{"role":"user","content":"a","images":["x"]}]})"), model);
            }),
            "messages[0].images: unsupported_parameter");
}

TEST_F(OllamaRequestTest, ATagThatSaysNothingIsLeftOut) {
  EXPECT_EQ(ollama_model_name(Json::parse(R"({"model":"a:latest"})")), "a");
  EXPECT_EQ(ollama_model_name(Json::parse(R"({"name":"a:7b"})")), "a:7b");
  EXPECT_EQ(ollama_model_name(Json::parse("{}")), "");
}

}  // namespace
}  // namespace godwit::serve
