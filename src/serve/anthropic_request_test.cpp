#include "serve/anthropic_request.h"

#include "serve/anthropic_messages.h"
#include "support/serve_fixture.h"

namespace godwit::serve {
namespace {

struct AnthropicRequestTest : ServeFixture {
  AnthropicRequest parse(const std::string& fields) {
    return parse_anthropic_request(Json::parse(fields), model);
  }
  // The messages of a conversation, as JSON.
  std::string messages(const std::string& list, const std::string& more = "") {
    return dump_json(parse(fmt::format(R"({{"messages":{}{}}})", list, more)).turn.messages);
  }
  std::string refusal(const std::string& more) {
    return refusal_of([&] { parse(R"({"messages":[{"role":"user","content":"hi"}])" + more + "}"); });
  }
};

TEST_F(AnthropicRequestTest, BlocksBecomeTheTextOfTheirTurn) {
  EXPECT_EQ(messages(R"([{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},
                          {"type":"text","text":"b"}]},{"role":"user","content":"c"}])",
                     R"(,"system":[{"type":"text","text":"S1"},{"type":"text","text":"S2"}])"),
            R"([{"role":"system","content":"S1\nS2"},{"role":"user","content":"a\nb\nc"}])");
}

TEST_F(AnthropicRequestTest, ResultsOfToolsComeBeforeTheRestOfTheirTurn) {
  const std::string turn = R"([
    {"role":"user","content":"go"},
    {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"I"},
      {"type":"tool_use","id":"t1","name":"f","input":{"a":1}},{"type":"tool_use","id":"t2","name":"g","input":{}}]},
    {"role":"user","content":[{"type":"text","text":"and?"},{"type":"tool_result","tool_use_id":"t1","content":"one"},
      {"type":"tool_result","tool_use_id":"t2","is_error":true,"content":[{"type":"text","text":"two"}]}]}])";
  EXPECT_EQ(messages(turn),
            R"([{"role":"user","content":"go"},{"role":"assistant","content":"I","reasoning_content":"t","tool_calls":[)"
            R"({"id":"t1","type":"function","function":{"name":"f","arguments":{"a":1}}},)"
            R"({"id":"t2","type":"function","function":{"name":"g","arguments":{}}}]},)"
            R"({"role":"tool","content":"one","name":"f","tool_call_id":"t1"},)"
            R"({"role":"tool","content":"Error: two","name":"g","tool_call_id":"t2"},)"
            R"({"role":"user","content":"and?"}])");
}

TEST_F(AnthropicRequestTest, OtherBlocksAreTextWhereTheyHaveSomeAndNotedWhereNot) {
  const AnthropicRequest asked = parse(R"({"messages":[{"role":"user","content":[
    {"type":"document","title":"T","source":{"type":"text","media_type":"text/plain","data":"D"}},
    {"type":"search_result","title":"R","source":"u","content":[{"type":"text","text":"C"}]},
    {"type":"novel","text":"N"},{"type":"container_upload","file_id":"x"}]}]})");
  EXPECT_EQ(asked.turn.messages[0]["content"], "T\nD\nR\nu\nC\nN");
  ASSERT_EQ(asked.notes.size(), 1u);
  EXPECT_EQ(asked.notes[0], "'messages[0].content[3].type' is left out: a block of type \"container_upload\"");
}

TEST_F(AnthropicRequestTest, TheLineOfTheBillingHeaderIsLeftOut) {
  const std::string header = "x-anthropic-billing-header: cc_version=1.2.3; cch=ab12c;";
  EXPECT_EQ(without_attribution(header), "");
  EXPECT_EQ(without_attribution(header + "\nYou are"), "You are");
  EXPECT_EQ(without_attribution("You are\n" + header + "\nhere"), "You are\nhere");
  EXPECT_EQ(without_attribution("say " + header + "\n"), "say " + header + "\n");
  const std::string user = R"([{"role":"user","content":"x-anthropic-billing-header: kept"}])";
  EXPECT_EQ(messages(user, R"(,"system":[{"type":"text","text":")" + header + R"("},{"type":"text","text":"You"}])"),
            R"([{"role":"system","content":"You"},{"role":"user","content":"x-anthropic-billing-header: kept"}])");
}

TEST_F(AnthropicRequestTest, ALastMessageOfTheAssistantBeginsTheAnswer) {
  const AnthropicRequest asked =
      parse(R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]})");
  EXPECT_TRUE(asked.turn.continues_final_message);
  EXPECT_FALSE(asked.turn.adds_generation_prompt);
  EXPECT_EQ(refusal_of([&] {
              parse(R"({"messages":[{"role":"user","content":"a"},
                 {"role":"assistant","content":[{"type":"tool_use","id":"i","name":"f","input":{}}]}]})");
            }),
            "messages: invalid_value");
}

TEST_F(AnthropicRequestTest, ToolsOfTheServerAreLeftOut) {
  const AnthropicRequest asked = parse(R"({"messages":[{"role":"user","content":"a"}],"tools":[
    {"type":"web_search_20250305","name":"web_search","max_uses":5},{"type":"bash_20250124","name":"bash"},
    {"name":"f","description":"d","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"},"strict":true},
    {"type":"custom","name":"g","input_schema":{}}],"tool_choice":{"type":"tool","name":"g","disable_parallel_tool_use":true}})");
  ASSERT_EQ(asked.turn.tools.size(), 2u);
  EXPECT_EQ(asked.turn.tools[0].description, "d");
  EXPECT_EQ(asked.turn.tools[1].parameters, Json::parse(R"({"type":"object"})"));
  EXPECT_EQ(asked.notes.size(), 2u);
  EXPECT_EQ(asked.turn.tool_choice.names, std::vector<std::string>{"g"});
  EXPECT_EQ(asked.turn.tool_choice.kind, ToolChoice::Kind::required);
  EXPECT_FALSE(asked.turn.tool_choice.is_parallel);
}

TEST_F(AnthropicRequestTest, ThinkingEffortAndFormat) {
  const std::string user = R"({"messages":[{"role":"user","content":"a"}])";
  EXPECT_EQ(parse(user + "}").turn.reasoning.is_on, false);
  const AnthropicRequest asked = parse(user + R"(,"thinking":{"type":"enabled","budget_tokens":2048.0},
     "output_config":{"effort":"high","format":{"type":"json_schema","schema":{"type":"object"}}}})");
  EXPECT_EQ(asked.turn.reasoning.is_on, true);
  EXPECT_EQ(asked.turn.reasoning.budget, 2048);
  EXPECT_EQ(asked.turn.reasoning.effort, "high");
  ASSERT_TRUE(asked.turn.output);
  EXPECT_EQ(asked.turn.output->spec.text, R"({"type":"object"})");
  EXPECT_EQ(parse(user + R"(,"thinking":{"type":"adaptive"}})").turn.reasoning.is_on, true);
}

TEST_F(AnthropicRequestTest, LimitsAndStops) {
  const std::string user = R"({"messages":[{"role":"user","content":"a"}])";
  EXPECT_EQ(parse(user + "}").turn.common.max_tokens, 4096);
  EXPECT_TRUE(parse(user + R"(,"max_tokens":0})").only_fills_cache);
  const AnthropicRequest asked = parse(user + R"(,"max_tokens":16.0,"stop_sequences":["","x"],"temperature":null,"top_k":3})");
  EXPECT_EQ(asked.turn.common.max_tokens, 16);
  EXPECT_EQ(asked.turn.common.stop, std::vector<std::string>{"x"});
  EXPECT_EQ(asked.turn.common.sampling.top_k, 3);
}

TEST_F(AnthropicRequestTest, WhatIsRefusedIsNamed) {
  EXPECT_EQ(refusal(R"(,"max_tokens":-1)"), "max_tokens: invalid_value");
  EXPECT_EQ(refusal(R"(,"max_tokens":"16")"), "max_tokens: invalid_value");
  EXPECT_EQ(refusal(R"(,"temperature":1.5)"), "temperature: invalid_value");
  EXPECT_EQ(refusal(R"(,"tools":[{"name":"f"}])"), "tools[0].input_schema: invalid_value");
  EXPECT_EQ(refusal(R"(,"tools":[{"name":"f","input_schema":{}},{"name":"f","input_schema":{}}])"), "tools[1].name: invalid_value");
  EXPECT_EQ(refusal(R"(,"tool_choice":{"type":"any"})"), "tool_choice.type: invalid_value");
  EXPECT_EQ(refusal(R"(,"tool_choice":{"type":"some"})"), "tool_choice.type: invalid_value");
  EXPECT_EQ(refusal(R"(,"thinking":{"type":"enabled","budget_tokens":1023})"), "thinking.budget_tokens: invalid_value");
  EXPECT_EQ(refusal(R"(,"output_config":{"format":{"type":"xml"}})"), "output_config.format.type: invalid_value");
  EXPECT_EQ(refusal(R"(,"system":7)"), "system: invalid_value");
  EXPECT_EQ(refusal_of([&] { parse(R"({"messages":[{"role":"banana","content":"a"}]})"); }), "messages[0].role: invalid_value");
  EXPECT_EQ(refusal_of([&] { parse(R"({"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]})"); }),
            "messages[0].content[0].type: unsupported_parameter");
  EXPECT_EQ(refusal_of([&] { parse(R"({"messages":[{"role":"user","content":[{"text":"a"}]}]})"); }),
            "messages[0].content[0].type: invalid_value");
  EXPECT_EQ(refusal_of([&] { parse("{}"); }), "messages: invalid_value");
}

}  // namespace
}  // namespace godwit::serve
