// What one API means by a field is honoured or refused by name on the routes of every other; nothing is ignored where it
// would change the answer.
#include "serve/unserved_fields.h"

#include "serve/anthropic_request.h"
#include "serve/ollama_request.h"
#include "support/dispatch_fixture.h"

namespace godwit::serve {
namespace {

struct Case {
  const char* field;
  const char* value;
};

// A route, with a body that it serves.
struct Way {
  const char* path;
  const char* body;
};

constexpr Way kChat = {"/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}]})"};
constexpr Way kText = {"/v1/completions", R"({"prompt":"a"})"};
constexpr Way kNative = {"/completion", R"({"prompt":"a"})"};
constexpr Way kResponses = {"/v1/responses", R"({"input":"a"})"};
constexpr Way kMessages = {"/v1/messages", R"({"max_tokens":4,"messages":[{"role":"user","content":"a"}]})"};
constexpr Way kCount = {"/v1/messages/count_tokens", R"({"messages":[{"role":"user","content":"a"}]})"};
constexpr Way kOllama = {"/api/chat", R"({"stream":false,"messages":[{"role":"user","content":"a"}]})"};
constexpr Way kGenerate = {"/api/generate", R"({"stream":false,"prompt":"a"})"};

constexpr Case kForms[] = {{"response_format", R"({"type":"json_object"})"},
                           {"structured_outputs", R"({"regex":"a"})"},
                           {"guided_json", "{\"type\":\"object\"}"},
                           {"guided_regex", "\"a\""},
                           {"guided_choice", R"(["a"])"},
                           {"guided_grammar", "\"root ::= 'a'\""},
                           {"grammar", "\"root ::= \\\"a\\\"\""},
                           {"json_schema", "{\"type\":\"object\"}"},
                           {"n", "2"},
                           {"best_of", "2"},
                           {"echo", "true"}};

struct UnservedFieldsTest : DispatchFixture {
  Response send(const Way& way, std::string_view field, std::string_view value) {
    Json body = Json::parse(way.body);
    body[std::string(field)] = Json::parse(value);
    generator.scripts.assign(4, spelled("ok", decode::FinishReason::stop));
    return post(way.path, body);
  }
  // The message of a 400 in the shape of the route's API, "" for anything else.
  std::string refusal(const Way& way, std::string_view field, std::string_view value) {
    const Response response = send(way, field, value);
    if (response.status != 400) return fmt::format("status {}", response.status);
    const Json error = Json::parse(response.body).at("error");
    if (std::string_view(way.path).starts_with("/api/")) return error.get<std::string>();
    if (std::string_view(way.path).starts_with("/v1/messages"))
      EXPECT_EQ(error.at("type"), "invalid_request_error");
    else
      EXPECT_EQ(error.at("code"), "unsupported_parameter");
    return error.at("message");
  }
  void refuses(const Way& way, std::string_view field, std::string_view value) {
    const std::string said = refusal(way, field, value);
    EXPECT_TRUE(said.starts_with(fmt::format("'{}': ", field)) && said.ends_with("is not served here"))
        << way.path << " " << field << " " << said;
  }
};

TEST_F(UnservedFieldsTest, FormsOfOtherApisAreRefusedByName) {
  for (const Way& way : {kResponses, kMessages, kCount, kOllama, kGenerate})
    for (const Case& each : kForms) refuses(way, each.field, each.value);
  EXPECT_TRUE(generator.requests.empty());
}

TEST_F(UnservedFieldsTest, EachApiRefusesTheWordsOfTheOthers) {
  const std::vector<std::pair<Way, std::vector<Case>>> table = {
      {kChat,
       {{"format", "\"json\""}, {"output_format", R"({"type":"json_schema"})"}, {"output_config", R"({"effort":"low"})"},
        {"text", R"({"format":{"type":"json_object"}})"}, {"thinking", R"({"type":"enabled"})"}, {"think", "true"},
        {"reasoning", R"({"effort":"low"})"}, {"system", "\"s\""}, {"instructions", "\"s\""}, {"stop_sequences", R"(["a"])"},
        {"max_output_tokens", "5"}, {"num_predict", "5"}, {"options", R"({"temperature":0})"}, {"truncation", "\"auto\""},
        {"previous_response_id", "\"resp_1\""}, {"chat_template", "\"x\""}, {"template", "\"x\""}, {"raw", "true"}}},
      {kText,
       {{"tools", R"([{"type":"function"}])"}, {"tool_choice", "\"required\""}, {"reasoning_effort", "\"low\""},
        {"chat_template_kwargs", R"({"a":1})"}, {"max_completion_tokens", "5"}, {"messages", R"([{"role":"user"}])"},
        {"parallel_tool_calls", "false"}, {"documents", R"(["x"])"}}},
      {kNative, {{"max_completion_tokens", "5"}, {"image_data", R"([{"id":1}])"}}},
      {kResponses,
       {{"max_tokens", "5"}, {"max_completion_tokens", "5"}, {"functions", R"([{"name":"f"}])"}, {"logprobs", "true"},
        {"messages", R"([{"role":"user"}])"}, {"continue_final_message", "true"}, {"prompt", R"({"id":"p"})"}}},
      {kMessages,
       {{"stop", "\"a\""}, {"max_completion_tokens", "5"}, {"reasoning_effort", "\"low\""}, {"logprobs", "true"},
        {"top_logprobs", "2"}, {"functions", R"([{"name":"f"}])"}, {"parallel_tool_calls", "false"},
        {"add_generation_prompt", "false"}, {"mcp_servers", R"([{"url":"u"}])"}, {"chat_template", "\"x\""}}},
      {kOllama,
       {{"temperature", "0"}, {"stop", "\"a\""}, {"logit_bias", R"({"5":1})"}, {"seed", "1"}, {"num_predict", "5"},
        {"max_tokens", "5"}, {"reasoning_effort", "\"low\""}, {"system", "\"s\""}, {"min_tokens", "2"}}},
      {kGenerate,
       {{"tools", R"([{"type":"function"}])"}, {"messages", R"([{"role":"user"}])"}, {"suffix", "\"x\""}, {"context", "[1]"},
        {"template", "\"x\""}, {"images", R"(["x"])"}}}};
  for (const auto& [way, cases] : table)
    for (const Case& each : cases) refuses(way, each.field, each.value);
  EXPECT_TRUE(generator.requests.empty());
}

// Values that ask for nothing, null, what no API gives a meaning, and what changes no answer.
TEST_F(UnservedFieldsTest, WhatAsksForNothingIsServed) {
  constexpr Case kFine[] = {{"response_format", R"({"type":"text"})"}, {"guided_json", "null"}, {"guided_choice", "null"},
                            {"n", "1"}, {"n", "1.0"}, {"echo", "false"}, {"tools", "[]"}, {"tool_choice", "null"},
                            {"parallel_tool_calls", "true"}, {"modalities", R"(["text"])"}, {"zzz", "{}"},
                            {"user", "\"u\""}, {"metadata", "{}"}, {"stream_options", "{}"}, {"keep_alive", "\"5m\""},
                            {"service_tier", "\"auto\""}, {"max_output_tokens", "null"}, {"top_logprobs", "0"}};
  for (const Way& way : {kChat, kText, kNative, kResponses, kMessages, kCount, kOllama, kGenerate})
    for (const Case& each : kFine) {
      const Response response = send(way, each.field, each.value);
      EXPECT_EQ(response.status, 200) << way.path << " " << each.field << " " << response.body;
    }
}

TEST_F(UnservedFieldsTest, WhatTheEngineKnowsIsHonouredWhereverItStands) {
  const auto anthropic = parse_anthropic_request(
      Json::parse(R"({"messages":[{"role":"user","content":"a"}],"max_tokens":9,"logit_bias":{"5":2},"min_tokens":3,
                      "stop_token_ids":[7],"priority":-4,"chat_template_kwargs":{"a":1}})"),
      model);
  EXPECT_EQ(anthropic.turn.common.sampling.logit_bias.at(5), 2);
  EXPECT_EQ(anthropic.turn.common.min_tokens, 3);
  EXPECT_EQ(anthropic.turn.common.stop_token_ids, std::vector<int>{7});
  EXPECT_EQ(anthropic.turn.common.priority, -4);
  EXPECT_EQ(anthropic.turn.template_variables, Json({{"a", 1}}));
  const auto ollama = parse_ollama_chat(
      Json::parse(R"({"messages":[{"role":"user","content":"a"}],"options":{"min_tokens":3,"stop_token_ids":[7]},
                      "tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"required"})"),
      model);
  EXPECT_EQ(ollama.turn.common.min_tokens, 3);
  EXPECT_EQ(ollama.turn.common.stop_token_ids, std::vector<int>{7});
  EXPECT_EQ(ollama.turn.tool_choice.kind, ToolChoice::Kind::required);
}

TEST_F(UnservedFieldsTest, FieldsWithinOptionsAreHeldToTheSame) {
  const std::string said = refusal(kOllama, "options", R"({"n":2})");
  EXPECT_TRUE(said.starts_with("'options.n': ")) << said;
  EXPECT_EQ(send(kOllama, "options", R"({"num_keep":4,"num_gpu":1,"num_thread":2,"n":1})").status, 200);
}

}  // namespace
}  // namespace godwit::serve
