#include "text/turn/call_grammar.h"

#include "base/error.h"
#include "text/test_grammars.h"
#include "text/turn/call_text.h"
#include "text/turn/tool_formats.h"
#include "text/turn/turn_test_support.h"

namespace godwit::text {
namespace {

using namespace turn_test;

std::vector<ToolSpec> two_tools(bool is_strict = true) {
  const Json get = Json::parse(R"({"type": "object", "properties": {"city": {"type": "string"},
    "days": {"type": "integer"}, "unit": {"enum": ["c", "f"]}, "near": {"type": "array", "items": {"type": "string"}},
    "where": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"],
    "additionalProperties": false}}, "required": ["city", "days"], "additionalProperties": false})");
  return {{.name = "get", .parameters = get, .is_strict = is_strict},
          {.name = "ping", .parameters = Json::parse(R"({"type": "object", "properties": {},
           "additionalProperties": false})"), .is_strict = is_strict}};
}

std::vector<ToolFormat> formats() {
  std::vector<ToolFormat> out;
  for (const std::string_view name : tool_format_names())
    if (name != "none") out.push_back(*tool_format_named(name));
  return out;
}

WrittenCall get(const char* arguments) { return {"get", Json::parse(arguments), ""}; }

std::string text_of(ToolFormat format, const std::vector<WrittenCall>& calls) {
  std::string text = call_text(format, calls);
  if (format == ToolFormat::harmony) text.resize(text.rfind("<|call|>"));  // an end token
  return text;
}

class CallGrammar : public testing::TestWithParam<ToolFormat> {
 protected:
  bool takes(const std::string& text, CallWish wish = CallWish::forced, bool is_parallel = true,
             std::vector<ToolSpec> allowed = two_tools()) const {
    const std::string grammar = call_grammar(TurnFormat{.tools = GetParam()}, allowed, wish, is_parallel);
    try {
      return grammars_.accepts(GrammarKind::lark, grammar, text);
    } catch (const Error& e) {
      ADD_FAILURE() << e.what() << "\n" << grammar;
      return false;
    }
  }
  std::string write(const std::vector<WrittenCall>& calls) const { return text_of(GetParam(), calls); }
  bool has_one_call() const { return GetParam() == ToolFormat::harmony; }

  ByteGrammars grammars_;
};

TEST_P(CallGrammar, TakesTheFormatsOwnRenderingAndTheParserReadsIt) {
  for (const char* arguments : {R"({"city": "Oslo", "days": 3})", R"({"city": "a b\\d", "days": -1, "unit": "f"})",
                                R"({"city": "x", "days": 0, "near": ["p", "q"], "where": {"lat": 1.5}})"}) {
    Json value = Json::parse(arguments);
    if (GetParam() == ToolFormat::gemma4 || GetParam() == ToolFormat::function_gemma)
      value = Json(nlohmann::json(value));  // keys are sorted there
    const std::string text = write({{"get", value, ""}});
    EXPECT_TRUE(takes(text)) << text;
    EXPECT_TRUE(takes(text, CallWish::forced, false)) << text;
    EXPECT_TRUE(takes(text, CallWish::free)) << text;
    const Turn turn = parse_whole({.tools = GetParam()}, two_tools(), text);
    ASSERT_EQ(turn.calls.size(), 1u) << text;
    EXPECT_TRUE(nlohmann::json(Json::parse(turn.calls[0].arguments)) == nlohmann::json(value)) << text;
  }
  EXPECT_TRUE(takes(write({{"ping", Json::object(), ""}})));
}

TEST_P(CallGrammar, RefusesOtherNamesArgumentsAndNoCall) {
  EXPECT_FALSE(takes(write({{"other", Json::object(), ""}})));
  EXPECT_FALSE(takes(write({get(R"({"city": "Oslo"})")})));                              // one is missing
  EXPECT_FALSE(takes(write({get(R"({"city": "Oslo", "days": "three"})")})));             // wrong type
  EXPECT_FALSE(takes(write({get(R"({"city": "Oslo", "days": 3, "unit": "k"})")})));      // not in the enum
  EXPECT_FALSE(takes(write({get(R"({"city": "Oslo", "days": 3, "more": 1})")})));        // unknown
  std::vector<ToolSpec> silent = two_tools();
  silent[0].parameters.erase("additionalProperties");
  const std::string more = write({get(R"({"city": "Oslo", "days": 3, "more": 1})")});
  EXPECT_FALSE(takes(more, CallWish::forced, true, silent)) << "a function has the parameters that it names";
  EXPECT_FALSE(takes("Hello"));
  EXPECT_FALSE(takes(""));
  const std::vector<ToolSpec> named = {two_tools()[0]};
  EXPECT_FALSE(takes(write({{"ping", Json::object(), ""}}), CallWish::forced, true, named));
}

TEST_P(CallGrammar, LimitsTheNumberOfCalls) {
  const std::string two = write({get(R"({"city": "Oslo", "days": 3})"), {"ping", Json::object(), ""}});
  EXPECT_EQ(takes(two), !has_one_call()) << two;
  EXPECT_FALSE(takes(two, CallWish::forced, false)) << two;
}

TEST_P(CallGrammar, LeavesTextFreeUpToACall) {
  const std::string call = write({get(R"({"city": "Oslo", "days": 3})")}), wrong = write({get(R"({"city": "Oslo"})")});
  const bool is_alone = GetParam() == ToolFormat::generic;
  if (is_alone) {
    EXPECT_TRUE(takes(R"({"response": "Hello"})", CallWish::free));
    EXPECT_FALSE(takes("Hello", CallWish::free));
  } else if (GetParam() == ToolFormat::harmony) {
    EXPECT_TRUE(takes("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hi < you",
                      CallWish::free));
  } else {
    EXPECT_TRUE(takes("Hello < <tool {\"a\": 1}", CallWish::free));
    EXPECT_TRUE(takes("", CallWish::free));
  }
  EXPECT_FALSE(takes(wrong, CallWish::free)) << wrong;
  EXPECT_TRUE(takes(wrong, CallWish::free, true, two_tools(false))) << wrong;
  const bool has_opener = !is_alone && GetParam() != ToolFormat::llama && GetParam() != ToolFormat::harmony;
  if (!has_opener) return;
  EXPECT_TRUE(takes("Let me see.\n" + call, CallWish::free));
  EXPECT_FALSE(takes("Let me see.\n" + wrong, CallWish::free));
}

// A strict tool with a parameter `v` of this schema.
std::vector<ToolSpec> strict_tool(const char* schema) {
  const Json parameters{{"type", "object"},
                        {"properties", {{"v", Json::parse(schema)}}},
                        {"required", {"v"}},
                        {"$defs", {{"n", {{"type", "integer"}}}}}};
  return {{.name = "get", .parameters = parameters, .is_strict = true}};
}

// What is said against it.
std::string strict_refusal(ToolFormat format, const char* schema, CallWish wish = CallWish::forced) {
  try {
    static_cast<void>(call_grammar({.tools = format}, strict_tool(schema), wish, true));
  } catch (const Error& e) {
    return e.code() == ErrorCode::invalid_argument ? e.what() : "another code";
  }
  return "";
}

TEST_P(CallGrammar, AStrictToolIsHeldToItsSchemaOrRefusedByNameAndKeyword) {
  for (const CallWish wish : {CallWish::forced, CallWish::free}) {
    for (const char* keyword : {"not", "if", "contains", "uniqueItems"}) {
      const std::string schema = fmt::format(R"({{"type":["string","array"],"{}":true,"then":{{}}}})", keyword);
      const std::string said = strict_refusal(GetParam(), schema.c_str(), wish);
      EXPECT_TRUE(holds(said, "'get' is strict")) << schema;
      EXPECT_TRUE(holds(said, fmt::format("#/properties/v/{}", keyword)));
    }
    for (const char* schema :
         {R"({"type":"string"})", R"({"type":"integer"})", R"({"enum":["a",1,null]})", R"({"const":"a"})",
          R"({"anyOf":[{"type":"integer"},{"type":"null"}]})", R"({"type":["integer","null"]})", R"({"$ref":"#/$defs/n"})",
          R"({"type":"array","items":{"type":"string"}})", R"({"type":"object","properties":{"a":{"type":"null"}}})"})
      EXPECT_EQ(strict_refusal(GetParam(), schema, wish), "") << schema;
  }
  std::vector<ToolSpec> tools = strict_tool(R"({"anyOf":[{"type":"integer"},{"type":"null"}]})");
  EXPECT_TRUE(takes(write({get(R"({"v":7})")}), CallWish::forced, true, tools));
  EXPECT_TRUE(takes(write({get(R"({"v":null})")}), CallWish::free, true, tools));
}

// What JSON is held to and other forms are not is refused there; nowhere is it left out.
TEST_P(CallGrammar, WhatAFormOfArgumentsCannotBeHeldToIsRefusedUnderStrict) {
  struct Case {
    const char* schema;
    const char* keyword;
    const char* wrong;
  };
  for (const Case& c : {Case{R"({"type":"string","pattern":"^a$"})", "pattern", R"({"v":"b"})"},
                        Case{R"({"type":"string","maxLength":1})", "maxLength", R"({"v":"bb"})"},
                        Case{R"({"type":"integer","minimum":5})", "minimum", R"({"v":3})"},
                        Case{R"({"type":"array","items":{"type":"integer"},"minItems":2})", "minItems", R"({"v":[1]})"},
                        Case{R"({"const":"a"})", "const", R"({"v":"b"})"},
                        Case{R"({"anyOf":[{"type":"integer"},{"type":"null"}]})", "anyOf", R"({"v":"b"})"},
                        Case{R"({"type":"array","items":{"$ref":"#/$defs/n"}})", "$ref", R"({"v":["b"]})"},
                        Case{R"({"properties":{"a":{"type":"null"}}})", "properties", R"({"v":{"a":1}})"}}) {
    const std::string said = strict_refusal(GetParam(), c.schema);
    if (!said.empty()) {
      EXPECT_TRUE(holds(said, c.keyword)) << said;
      continue;
    }
    EXPECT_FALSE(takes(write({get(c.wrong)}), CallWish::forced, true, strict_tool(c.schema))) << c.schema;
  }
}

TEST_P(CallGrammar, JsonMayComeInPlaceOfTheCalls) {
  const Json schema = Json::parse(R"({"type":"object","properties":{"b":{"type":"boolean"}},"required":["b"]})");
  const TurnFormat format{.tools = GetParam()};
  if (!may_have_json_instead(format)) {
    EXPECT_THROW(call_grammar(format, two_tools(), CallWish::forced, true, schema), Error);
    return;
  }
  const std::string grammar = call_grammar(format, two_tools(), CallWish::forced, true, schema);
  const auto compiled = grammars_.compile(GrammarKind::lark, grammar);
  const std::string before = GetParam() == ToolFormat::harmony ? "<|channel|>final<|message|>" : "";
  EXPECT_TRUE(ByteGrammars::accepts(compiled, before + R"({"b": true})")) << grammar;
  EXPECT_FALSE(ByteGrammars::accepts(compiled, before + R"({"b": 1})"));
  EXPECT_FALSE(ByteGrammars::accepts(compiled, before + "Hello"));
  EXPECT_TRUE(ByteGrammars::accepts(compiled, write({get(R"({"city": "Oslo", "days": 3})")})));
  EXPECT_FALSE(ByteGrammars::accepts(compiled, write({get(R"({"city": "Oslo"})")})));
}

std::string test_name(const testing::TestParamInfo<ToolFormat>& info) { return std::string(name_of(info.param)); }

INSTANTIATE_TEST_SUITE_P(Formats, CallGrammar, testing::ValuesIn(formats()), test_name);

// Markers that are special tokens are asked for by id, and free text never holds them.
TEST(CallGrammarTokens, SpecialTokensStandForMarkers) {
  std::vector<GrammarToken> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back({std::string(1, static_cast<char>(byte))});
  for (const char* name : {"<end>", "<tool_call>", "</tool_call>"}) tokens.push_back({name, true});
  const auto vocabulary = std::make_shared<const GrammarVocabulary>(tokens, std::set<int>{256});
  const TurnFormat format{.tools = ToolFormat::hermes, .token_texts = {{257, "<tool_call>"}, {258, "</tool_call>"}},
                          .hidden_tokens = {257, 258}};
  for (const CallWish wish : {CallWish::forced, CallWish::free}) {
    const std::string grammar = call_grammar(format, two_tools(), wish, true);
    GrammarMatcher matcher(
        std::make_shared<const CompiledGrammar>(vocabulary, GrammarSpec{GrammarKind::lark, grammar, true}));
    EXPECT_EQ(has_bit(matcher.mask(), 'H'), wish == CallWish::free);
    EXPECT_TRUE(has_bit(matcher.mask(), 257));
    matcher.accept(257);
    for (const char c : std::string_view("\n{\"name\": \"ping\", \"arguments\": {}}\n")) {
      ASSERT_TRUE(has_bit(matcher.mask(), c)) << c << "\n" << grammar;
      matcher.accept(c);
    }
    EXPECT_TRUE(has_bit(matcher.mask(), 258));
    EXPECT_FALSE(matcher.is_complete());
    matcher.accept(258);
    EXPECT_TRUE(matcher.is_complete());
  }
}

}  // namespace
}  // namespace godwit::text
