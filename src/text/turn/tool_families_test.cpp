// Every format: many turns as its models write them, whole, by characters and in random pieces, and calls that come back
// as they were written.
#include "text/turn/call_text.h"
#include "text/turn/tool_formats.h"
#include "text/turn/turn_test_support.h"

namespace godwit::text {
namespace {

using namespace turn_test;

std::vector<ToolFormat> formats() {
  std::vector<ToolFormat> out;
  for (const std::string_view name : tool_format_names())
    if (name != "none") out.push_back(*tool_format_named(name));
  return out;
}

// Formats whose strings have no way to hold the quotes or tags around them.
bool holds(ToolFormat format, const Json& arguments) {
  const std::string all = dump_json(arguments);
  if (format == ToolFormat::minicpm5) return all.find("]]>") == std::string::npos;
  return true;
}

std::vector<Json> argument_sets() {
  std::vector<Json> sets;
  for (const char* text : {
           R"({})", R"({"text": "plain"})", R"({"text": ""})", R"({"text": "123"})", R"({"count": 123})",
           R"({"ratio": -1.5e-3})", R"({"on": true})", R"({"on": false, "count": 0})", R"({"list": []})",
           R"({"list": ["a", "b c", "d,e]"]})", R"({"map": {}})", R"({"map": {"a": {"b": [1, null, "x}"]}}})",
           R"({"maybe": null})", R"({"maybe": "text"})", R"({"nothing": null})", R"({"unit": "c"})",
           R"({"mode": "7"})", R"({"text": "two\nlines\n\nand more"})", R"({"text": "quo\"te's and \\ back"})",
           R"({"text": "</parameter> <tool> </param> </arg_value x"})", R"({"text": "a\u0000b\t\u001f"})",
           R"({"text": "emoji 😸 and é \u2028"})", R"({"text": "{\"a\": [1, 2}"})", R"({"text": "a < b && c > d"})",
           R"({"text": "true", "count": 1, "on": true, "list": ["x"], "map": {"k": "v"}})",
           R"({"text": "ends with newline\n", "count": -5})", R"({"text": " spaces around "})",
           R"({"text": "[1, 2]", "list": ["'", "\""]})", R"({"map": {"deep": {"deeper": {"deepest": "x"}}}})",
           R"({"text": "\\d+\\s*(.*)$"})", R"({"text": "日本語のテキスト"})", R"({"other": "unknown key"})"})
    sets.push_back(Json::parse(text));
  return sets;
}

bool comes_alone(ToolFormat format) { return format == ToolFormat::llama || format == ToolFormat::generic; }

void expect_calls(const Turn& turn, std::span<const WrittenCall> calls, const std::string& text) {
  ASSERT_EQ(turn.calls.size(), calls.size()) << text;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(turn.calls[i].name, calls[i].name) << text;
    const Json got = Json::parse(turn.calls[i].arguments);
    EXPECT_TRUE(nlohmann::json(got) == nlohmann::json(calls[i].arguments)) << got << "\n" << text;
  }
}

class EveryFormat : public testing::TestWithParam<ToolFormat> {};

TEST_P(EveryFormat, ReadsWhatItsModelsWrite) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const TurnFormat format = format_of(GetParam());
  int turns = 0;
  for (const Json& arguments : argument_sets()) {
    if (!holds(GetParam(), arguments)) continue;
    const std::vector<WrittenCall> one = {{.name = "set", .arguments = arguments}},
                                   two = {{.name = "set", .arguments = arguments}, {.name = "g"}};
    for (const auto& calls : {one, two}) {
      const std::string text = call_text(GetParam(), calls);
      const Turn bare = parse_every_way(format, tools(), text, random);
      expect_calls(bare, calls, text);
      EXPECT_EQ(bare.content, "") << text;
      ++turns;
      if (comes_alone(GetParam())) continue;
      const bool has_header = GetParam() == ToolFormat::harmony;
      const std::string before = has_header ? "<|channel|>commentary<|message|>Let me see.<|end|><|start|>assistant"
                                            : "Let me see.\n\n";
      const Turn told = parse_every_way(format, tools(), before + text, random);
      expect_calls(told, calls, text);
      EXPECT_EQ(told.content, "Let me see.") << text;
    }
  }
  EXPECT_GE(turns, 30);
}

TEST_P(EveryFormat, ClosesACallThatTheEndCutsWherever) {
  const TurnFormat format = format_of(GetParam());
  const std::vector<WrittenCall> calls = {
      {"set", Json::parse(R"({"text": "a\nb", "count": 12, "list": ["x"], "map": {"k": null}})")},
      {"g", Json::object()}};
  const auto letters = characters(call_text(GetParam(), calls));
  std::string text;
  for (const std::string& letter : letters) {
    text += letter;
    const Turn turn = parse_whole(format, tools(), text);  // checks the arguments' JSON
    EXPECT_LE(turn.calls.size(), 2u);
    const bool is_nothing = turn.calls.empty() && turn.content.empty();
    EXPECT_TRUE(!is_nothing || GetParam() == ToolFormat::harmony) << text;
  }
}

TEST_P(EveryFormat, IsSilentWithoutToolsAndOverAfterOneCallWhereAskedTo) {
  const std::vector<WrittenCall> calls = {{"f", Json::object()}, {"g", Json::object()}};
  const std::string text = call_text(GetParam(), calls);
  EXPECT_TRUE(parse_whole(format_of(GetParam()), {}, text).calls.empty());
  EXPECT_EQ(parse_whole(format_of(GetParam()), tools(), text, {.is_parallel = false}).calls.size(), 1u);
  EXPECT_EQ(parse_whole(format_of(GetParam()), tools(), text).calls.size(), 2u);
}

std::string test_name(const testing::TestParamInfo<ToolFormat>& info) { return std::string(name_of(info.param)); }

INSTANTIATE_TEST_SUITE_P(Formats, EveryFormat, testing::ValuesIn(formats()), test_name);

struct Written {
  ToolFormat format;
  std::string text, content, name, arguments;
};

TEST(ToolFamilies, OtherFormsOfTheSame) {
  const std::vector<Written> cases = {
      {ToolFormat::qwen_xml, "<function=set>\n<parameter=text>\nx\n</parameter>\n</function>\n</tool_call>", "", "set",
       R"({"text": "x"})"},
      {ToolFormat::qwen_xml, "<tool_call>\n<function=set>\n<parameter=count>\n7\n</parameter>\n", "", "set",
       R"({"count": 7})"},
      {ToolFormat::qwen_xml, "<tool_call><function=set><parameter=count>seven</parameter></function></tool_call>", "",
       "set", R"({"count": "seven"})"},
      {ToolFormat::qwen_xml, "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "", "f", "{}"},
      {ToolFormat::qwen_xml,
       "<tool_call>\n<function=set>\n<parameter=text>\nif a:\n\tb\n\n</parameter>\n</function>\n</tool_call>", "", "set",
       R"({"text": "if a:\n\tb\n"})"},
      {ToolFormat::qwen_xml,
       "<tool_call>\n<function=set>\n<parameter=text>\n</parameter> inside\n</parameter>\n</function>\n</tool_call>", "",
       "set", R"({"text": "</parameter> inside"})"},
      {ToolFormat::qwen_xml,
       "<tool_call>\n<function=set>\n<parameter=map>\n{'a': True}\n</parameter>\n</function>\n</tool_call>", "", "set",
       R"({"map": {"a": true}})"},
      {ToolFormat::qwen_xml, "<tool_call><function=set><parameter=map>{\"a\": 1} and</parameter></function></tool_call>", "",
       "set", R"({"map": "{\"a\": 1} and"})"},
      {ToolFormat::hermes, "<tool_call><function=set><parameter=text>x</parameter></function></tool_call>", "", "set",
       R"({"text": "x"})"},
      {ToolFormat::llama, "<|python_tag|>{\"name\": \"set\", \"parameters\": {\"count\": 1}}", "", "set",
       R"({"count": 1})"},
      {ToolFormat::llama, "\n{\"type\": \"function\", \"name\": \"set\", \"parameters\": {\"count\": 1}}", "", "set",
       R"({"count": 1})"},
      {ToolFormat::llama, "[set(count=1, text=\"x\")]", "", "set", R"({"count":1, "text":"x"})"},
      {ToolFormat::llama, "```json\n{\"name\": \"set\", \"parameters\": {}}\n```", "", "set", "{}"},
      {ToolFormat::lfm2, "<|tool_call_start|>[set(text='a', map={'k': (1, None)}, on=True)]<|tool_call_end|>", "", "set",
       R"({"text":"a", "map":{"k": [1, null]}, "on":true})"},
      {ToolFormat::lfm2, "<|tool_call_start|>[set(\"first\", 2)]<|tool_call_end|>Calling.", "Calling.", "set",
       R"({"text":"first", "count":2})"},
      {ToolFormat::lfm2, "<|tool_call_start|>[set(text='''a\n'b' ''')]<|tool_call_end|>", "", "set",
       R"({"text":"a\n'b' "})"},
      {ToolFormat::lfm2, "<|tool_call_start|>[set(text=\"\\x41\\101\\u00e9\\q\")]<|tool_call_end|>", "", "set",
       R"({"text":"AA\u00e9\\q"})"},
      {ToolFormat::mistral, "[TOOL_CALLS][{\"name\": \"set\", \"arguments\": {\"count\": 1}, \"id\": \"abcdefghi\"}]", "",
       "set", R"({"count": 1})"},
      {ToolFormat::mistral, "[TOOL_CALLS] [{\"arguments\": {\"count\": 1}, \"name\": \"set\"}]", "", "set",
       R"({"count": 1})"},
      {ToolFormat::mistral, "Sure.[TOOL_CALLS]set{\"count\": 1}", "Sure.", "set", R"({"count": 1})"},
      {ToolFormat::glm, "<tool_call>f</tool_call>", "", "f", "{}"},
      {ToolFormat::glm, "<tool_call>set\n<arg_key>count</arg_key><arg_value>4</arg_value>\n</tool_call>", "", "set",
       R"({"count": 4})"},
      {ToolFormat::minicpm5, "<function name=\"set\"><param name=\"text\">a &lt; b &amp;&#x21; &q</param></function>", "",
       "set", R"({"text": "a < b &! &q"})"},
      {ToolFormat::minicpm5,
       "<function name=\"set\"> <param name=\"text\"><![CDATA[a ]]> </param b]]></param> </function>", "", "set",
       R"({"text": "a ]]> </param b"})"},
      {ToolFormat::minimax,
       "<minimax:tool_call>\n<invoke name=\"set\">\n<parameter name=\"count\">3</parameter>\n</invoke>\n", "", "set",
       R"({"count": 3})"},
      {ToolFormat::deepseek,
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>set\n```json\n{\"count\": 1}\n```"
       "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "", "set", R"({"count": 1})"},
      {ToolFormat::deepseek, "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{}<｜tool▁call▁end｜>", "", "function", "{}"},
      {ToolFormat::kimi, "<|tool_call_begin|>functions.set:3<|tool_call_argument_begin|>{}<|tool_call_end|>", "", "set",
       "{}"},
      {ToolFormat::gemma4, "<|tool_call>call:set{text:<|\"|>a{b}<|\"|>,map:{k:[1,<|\"|>x<|\"|>]}}<tool_call|>", "", "set",
       R"({"text":"a{b}","map":{"k":[1,"x"]}})"},
      {ToolFormat::gemma4, "<|tool_call>call:set{text:no quotes, count:2}<tool_call|>", "", "set",
       R"({"text":"no quotes", "count":2})"},
      {ToolFormat::generic, "{\"response\": \"Hello \\\"you\\\" \\u00e9\"}", "Hello \"you\" é", "", ""},
      {ToolFormat::nemotron, "<TOOLCALL>[{\"name\": \"set\", \"arguments\": {}}</TOOLCALL>", "", "set", "{}"},
      {ToolFormat::functionary, "<function=set>{\"count\": 1}</function>", "", "set", R"({"count": 1})"},
  };
  std::mt19937 random(5);
  for (const Written& one : cases) {
    const Turn turn = parse_every_way(format_of(one.format), tools(), one.text, random);
    EXPECT_EQ(turn.content, one.content) << one.text;
    ASSERT_EQ(turn.calls.size(), one.name.empty() ? 0u : 1u) << one.text;
    if (one.name.empty()) continue;
    EXPECT_EQ(turn.calls[0].name, one.name) << one.text;
    EXPECT_EQ(turn.calls[0].arguments, one.arguments) << one.text;
  }
}

TEST(ToolFamilies, WhatOnlyLooksLikeACallIsContent) {
  const std::vector<std::pair<ToolFormat, std::string>> cases = {
      {ToolFormat::llama, "{\"name\": \"unknown\", \"parameters\": {}}"},
      {ToolFormat::llama, "{\"answer\": 42}"},
      {ToolFormat::llama, "Sure: {\"name\": \"set\", \"parameters\": {}}"},
      {ToolFormat::llama, "[1, 2, 3]"},
      {ToolFormat::llama, "[link](http://x)"},
      {ToolFormat::llama, "[unknown(a=1)]"},
      {ToolFormat::llama, "```python\nprint(1)\n```"},
      {ToolFormat::generic, "{\"answer\": 42}"},
      {ToolFormat::qwen_xml, "use <function= for that"},
      {ToolFormat::qwen_xml, "<tool_call>\nhm\n</tool_call>"},
      {ToolFormat::mistral, "[TOOL_CALLS] is a token"},
      {ToolFormat::mistral, "[TOOL_CALLS]f[ARGS]nothing"},
      {ToolFormat::kimi, "<|tool_calls_section_begin|>none"},
      {ToolFormat::gemma4, "<|tool_call>what{"},
      {ToolFormat::lfm2, "<|tool_call_start|>[]<|tool_call_end|>"},
      {ToolFormat::glm, "<tool_call>no name here\n"},
      {ToolFormat::minicpm5, "<function name=\"\">"},
  };
  std::mt19937 random(6);
  for (const auto& [format, text] : cases)
    EXPECT_EQ(parse_every_way(format_of(format), tools(), text, random), (Turn{"", text, {}})) << text;
}

TEST(ToolFamilies, IdsThatTheModelWroteAreKept) {
  const Turn kimi = parse_whole(format_of(ToolFormat::kimi), tools(),
                                call_text(ToolFormat::kimi, std::vector<WrittenCall>{{.name = "f"}, {.name = "f"}}));
  ASSERT_EQ(kimi.calls.size(), 2u);
  EXPECT_EQ(kimi.calls[1].id, "functions.f:1");
  const Turn mistral =
      parse_whole(format_of(ToolFormat::mistral), tools(),
                  "[TOOL_CALLS]f[CALL_ID]abc456789[ARGS]{}[TOOL_CALLS]g[CALL_ID]abc456789[ARGS]{}");
  ASSERT_EQ(mistral.calls.size(), 2u);
  EXPECT_EQ(mistral.calls[0].id, "abc456789");
  EXPECT_NE(mistral.calls[1].id, "abc456789");  // one id, one call
}

TEST(ToolFamilies, HarmonyHeadersSayTheSameInEveryOrder) {
  std::mt19937 random(7);
  const TurnFormat format{.tools = ToolFormat::harmony};
  const std::string thought = "<|channel|>analysis<|message|>hm functions.f<|end|><|start|>assistant";
  for (const std::string header :
       {"<|channel|>commentary to=functions.set <|constrain|>json", " to=functions.set<|channel|>commentary json",
        "<|channel|>commentary to=functions.set<|constrain|>json", " to=functions.set<|channel|>commentary <|constrain|>json",
        "<|channel|>analysis to=functions.set json"}) {
    const std::string text = thought + header + "<|message|>{\"count\": 1}<|call|>";
    const Turn turn = parse_every_way(format, tools(), text, random);
    EXPECT_EQ(turn.reasoning, "hm functions.f") << text;
    EXPECT_EQ(turn.content, "") << text;
    ASSERT_EQ(turn.calls.size(), 1u) << text;
    EXPECT_EQ(turn.calls[0].name, "set");
    EXPECT_EQ(turn.calls[0].arguments, "{\"count\": 1}");
  }
  EXPECT_EQ(parse_every_way(format, tools(), thought + "<|channel|>final<|message|>Yes.<|return|>", random),
            (Turn{"hm functions.f", "Yes.", {}}));
  EXPECT_EQ(parse_every_way(format, tools(), "No header at all", random), (Turn{"", "No header at all", {}}));
  EXPECT_EQ(parse_every_way(format, tools(), "<|channel|>analysis to=python<|message|>1+1<|call|>", random),
            (Turn{"1+1", "", {}}));
}

// No byte that a model may send is lost or breaks anything.
TEST(ToolFamilies, ArbitraryTextIsReadTheSameInEveryCut) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::vector<std::string> words = {"{", "}", "[", "]", "(", ")", "\"", "'", "\\", "\\u12", ":", ",", "=", "\n", " ",
                                          "a", "1", "é", "true", "name", "\"name\"", "\"arguments\"", "f", "set", "<",
                                          "</", ">", "```", ";", "&amp;", "<think>", "</think>", "{\"name\": \"f\""};
  for (const ToolFormat tool_format : formats()) {
    std::vector<std::string> all = words;
    for (const std::string_view text : marker_texts(tool_format)) all.insert(all.end(), 4, std::string(text));
    const std::string calls = call_text(tool_format, std::vector<WrittenCall>{{"set", {{"text", "x"}, {"count", 1}}, ""}});
    for (int round = 0; round < 40; ++round) {
      std::string text = round % 2 ? calls.substr(0, random() % calls.size()) : "";
      while (text.size() > 0 && (static_cast<unsigned char>(text.back()) & 0x80)) text.pop_back();
      for (unsigned left = random() % 24; left > 0; --left) text += all[random() % all.size()];
      parse_every_way(format_of(tool_format), tools(), text, random);
    }
  }
}

}  // namespace
}  // namespace godwit::text
