#include "text/turn/turn_format.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/byte_tokenizer.h"
#include "text/turn/normalise_chat.h"
#include "text/turn/turn_parser.h"

namespace godwit::text {
namespace {

TEST(TurnFormat, NotesTheTokensOfItsMarkers) {
  const Tokenizer tokenizer = testing::byte_tokenizer({"<|end|>", "<|tool_call>", "<tool_call|>", "<|channel>", "<channel|>"});
  const TurnFormat format =
      turn_format_of("{{ '<|tool_call>call:' }} <tool_call|> <|channel>thought <channel|> {% if enable_thinking %}", tokenizer);
  EXPECT_EQ(format.tools, ToolFormat::gemma4);
  EXPECT_EQ(format.reasoning_open, "<|channel>thought");
  EXPECT_EQ(format.thinking_variable, "enable_thinking");
  EXPECT_EQ(format.token_texts, (std::map<int, std::string>{
                                    {257, "<|tool_call>"}, {258, "<tool_call|>"}, {259, "<|channel>"}, {260, "<channel|>"}}));
  EXPECT_EQ(format.hidden_tokens.size(), 4u);
}

TEST(TurnFormat, CanBeGivenByName) {
  const Tokenizer tokenizer = testing::byte_tokenizer();
  EXPECT_EQ(turn_format_of("<tool_call>", tokenizer, "mistral").tools, ToolFormat::mistral);
  EXPECT_EQ(turn_format_of("<tool_call>", tokenizer).tools, ToolFormat::hermes);
  EXPECT_THROW(turn_format_of("<tool_call>", tokenizer, "nonsense"), Error);
  for (const std::string_view name : tool_format_names())
    EXPECT_EQ(name_of(turn_format_of("", tokenizer, name).tools), name);
}

TEST(TurnFormat, KnowsAPromptThatOpensTheReasoning) {
  const TurnFormat format{.reasoning_open = "<think>", .reasoning_close = "</think>"};
  EXPECT_TRUE(opens_reasoning(format, "<|im_start|>assistant\n<think>\n"));
  EXPECT_FALSE(opens_reasoning(format, "<|im_start|>assistant\n<think>\n\n</think>\n\n"));
  EXPECT_FALSE(opens_reasoning(format, "<|im_start|>assistant\n"));
  EXPECT_FALSE(opens_reasoning({}, "<think>"));
}

Json user(const char* text) { return {{"role", "user"}, {"content", text}}; }
Json system(const char* text) { return {{"role", "system"}, {"content", text}}; }

std::string render(const std::string& source, Json messages, bool merges, Json tools = nullptr) {
  const ChatTemplate chat_template(source, Json::object(), "test");
  return chat_template.render(normalise_chat({.messages = std::move(messages), .tools = std::move(tools)},
                                             template_traits(chat_template), {.tools = ToolFormat::hermes},
                                             {.merges_refused = merges}));
}

const std::string kPlain = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";
const std::string kNoSystem =
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system here') }}{% endif %}"
    "[{{ m.role }}]{{ m.content }}{% endfor %}";
const std::string kDropsSystem =
    "{% for m in messages %}{% if m.role != 'system' %}[{{ m.role }}]{{ m.content }}{% endif %}{% endfor %}";
const std::string kAlternates =
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('must alternate') }}"
    "{% endif %}[{{ m.role }}]{{ m.content }}{% endfor %}";

TEST(NormaliseChat, DeveloperAndAbsentContentAndParts) {
  const Json parts = Json::array({{{"type", "text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b"}}});
  EXPECT_EQ(render(kPlain, {{{"role", "developer"}, {"content", "D"}}, {{"role", "user"}, {"content", parts}},
                            {{"role", "assistant"}, {"content", nullptr}}},
                   false),
            "[system]D[user]ab[assistant]");
  EXPECT_EQ(render(kPlain + "{# developer #}", {{{"role", "developer"}, {"content", "D"}}, user("U")}, false),
            "[developer]D[user]U");
}

TEST(NormaliseChat, WhatIsRefusedIsMergedOnRequestAndWhatIsDroppedAlways) {
  try {
    render(kNoSystem, {system("S"), user("U")}, false);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("no system here"), std::string::npos);
  }
  EXPECT_EQ(render(kNoSystem, {system("S"), user("U")}, true), "[user]S\n\nU");
  EXPECT_EQ(render(kDropsSystem, {system("S"), user("U")}, false), "[user]S\n\nU");
  EXPECT_THROW(render(kAlternates, {user("A"), user("B")}, false), Error);
  EXPECT_EQ(render(kAlternates, {user("A"), user("B")}, true), "[user]A\n\nB");
  EXPECT_EQ(render(kAlternates, {system("S"), user("A"), system("T"), user("B")}, true), "[user]S\n\nT\n\nA\n\nB");
  EXPECT_EQ(render(kPlain, {system("S"), user("A"), system("T"), user("B")}, true), "[system]S[user]A[system]T[user]B");
}

Json calls(std::initializer_list<std::pair<const char*, const char*>> named) {
  Json out{{"role", "assistant"}, {"content", "Now."}, {"tool_calls", Json::array()}};
  for (const auto& [id, name] : named)
    out["tool_calls"].push_back({{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", "{\"a\":1}"}}}});
  return out;
}

Json result(const char* id, const char* text) { return {{"role", "tool"}, {"tool_call_id", id}, {"content", text}}; }

TEST(NormaliseChat, CallsResultsAndToolsThatTheTemplateCannotShowAreWrittenOut) {
  const Json tools = Json::array({{{"type", "function"}, {"function", {{"name", "f"}}}}});
  const std::string source = "{% for m in messages %}{% if m.role != 'tool' %}[{{ m.role }}]{{ m.content }}{% endif %}{% endfor %}";
  const std::string text = render(source, {user("U"), calls({{"1", "f"}}), result("1", "R")}, false, tools);
  EXPECT_TRUE(text.starts_with("[system]You can call these functions")) << text;
  EXPECT_NE(text.find("{\"name\": \"f\"}"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("[user]U[assistant]Now.\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>"
                             "[user]<tool_response>\nR\n</tool_response>"))
      << text;
}

TEST(NormaliseChat, SeveralCallsBecomeTurnsOfTheirOwnWhereATemplateShowsOne) {
  const std::string source =
      "{{ tools }}{% for m in messages %}[{{ m.role }}]{% if m.tool_calls %}{{ m.tool_calls[0].function.name }}"
      "{{ m.tool_calls[0].function.arguments | tojson }}{% else %}{{ m.content }}{% endif %}{% endfor %}";
  const std::string text = render(source, {user("U"), calls({{"1", "f"}, {"2", "g"}}), result("2", "R2"), result("1", "R1")},
                                  false);
  EXPECT_TRUE(text.ends_with("[user]U[assistant]f{\"a\": 1}[tool]R1[assistant]g{\"a\": 1}[tool]R2")) << text;
}

TEST(NormaliseChat, SchemasGetTypesWhereTheTemplateNeedsThem) {
  const Json tools = Json::parse(R"([{"type": "function", "function": {"name": "f", "parameters": {"properties": {
    "a": {"enum": [1, 2]}, "b": {"anyOf": [{"type": "null"}, {"type": "number"}]}, "c": {"type": ["string", "null"]},
    "d": {"items": {}}}}}}])");
  const std::string source = "{% for t in tools %}{{ t.function.name }}{% for k, v in t.function.parameters.properties.items() %}"
                             "{{ k }}{{ v['type'] | upper }} {% endfor %}{% endfor %}{% for m in messages %}{{ m.content }}{% endfor %}";
  EXPECT_EQ(render(source, {user("U")}, false, tools), "faINTEGER bNUMBER cSTRING dARRAY U");
}

}  // namespace
}  // namespace godwit::text
