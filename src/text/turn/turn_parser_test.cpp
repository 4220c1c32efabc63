#include "text/turn/turn_parser.h"

#include "text/turn/call_text.h"
#include "text/turn/tool_formats.h"
#include "text/turn/turn_test_support.h"

namespace godwit::text {
namespace {

using namespace turn_test;

const std::string kStream =
    "Hi <tool_call>\n{\"name\":\"f\",\"arguments\":{\"x\":\"</b> \\\\d+\"}}\n</tool_call>\n<tool_call>\n"
    "{\"name\":\"g\",\"arguments\":{}}\n</tool_call>";

Turn without_ids(Turn turn) {
  for (Call& call : turn.calls) call.id.clear();
  return turn;
}

Turn whole(const std::string& text, ToolFormat format = ToolFormat::hermes) {
  return without_ids(parse_whole(format_of(format), tools(), text));
}

const Turn kStreamParsed = {"", "Hi ", {{"f", R"({"x":"</b> \\d+"})", ""}, {"g", "{}", ""}}};

TEST(TurnParser, MarkersAcrossPiecesAndTheSecondCall) {
  const std::vector<std::string> pieces = {
      "Hi <to",
      "ol_call>\n{\"name\":\"f\",\"argu",
      "ments\":{\"x\":\"</b> \\\\d+\"}}\n</tool",
      "_call>\n<tool_call>\n{\"name\":\"g\",\"arguments\":{}}",
      "\n</tool_call>"};
  EXPECT_EQ(without_ids(parse(format_of(ToolFormat::hermes), tools(), pieces)), kStreamParsed);
}

TEST(TurnParser, EveryCutIntoUpToThreePiecesGivesTheSame) {
  const std::string& text = kStream;
  for (std::size_t first = 0; first <= text.size(); ++first)
    for (std::size_t second = first; second <= text.size(); ++second) {
      const std::vector<std::string> pieces = {text.substr(0, first), text.substr(first, second - first),
                                               text.substr(second)};
      ASSERT_EQ(without_ids(parse(format_of(ToolFormat::hermes), tools(), pieces)), kStreamParsed)
          << first << " " << second;
    }
}

// Names, attributes, headers, fences and entities up to so many bytes: one byte more is one byte more however it comes.
TEST(TurnParser, LimitsOfLengthDoNotDependOnThePieces) {
  const auto expect_equal = [](ToolFormat format, const std::string& text) {
    EXPECT_EQ(without_ids(parse(format_of(format), tools(), characters(text))), whole(text, format)) << text;
  };
  for (const std::size_t limit : {32u, 256u, 1024u})
    for (std::size_t size = limit - 16; size < limit + 16; ++size) {
      const std::string word(size, 'n');
      for (const std::string_view name : tool_format_names()) {
        const ToolFormat format = tool_format_named(name).value();
        expect_equal(format, call_text(format, std::vector<WrittenCall>{{.name = word, .arguments = {{"a", 1}}}}));
        expect_equal(format, call_text(format, std::vector<WrittenCall>{{.name = "f", .arguments = {{word, "x"}}}}));
      }
      expect_equal(ToolFormat::glm, "<tool_call>f<arg_key>a</arg_key>" + word + "<arg_value>1</arg_value></tool_call>");
      expect_equal(ToolFormat::minicpm5, "<function name=\"f\" " + word + "><param name=\"a\">1</param></function>");
      expect_equal(ToolFormat::hermes, "<tool_call>```" + word + "\n{\"name\": \"f\", \"arguments\": {}}\n```</tool_call>");
      expect_equal(ToolFormat::deepseek, "<｜tool▁call▁begin｜>f<｜tool▁sep｜>```" + word + "\n{}\n```<｜tool▁call▁end｜>");
      expect_equal(ToolFormat::harmony, "<|channel|>" + word + "<|message|>x<|end|>");
      expect_equal(ToolFormat::harmony, "<|channel|>é" + word + "é<|message|>x<|end|>");
    }
  for (std::size_t zeros = 0; zeros < 12; ++zeros)
    expect_equal(ToolFormat::minicpm5,
                 "<function name=\"f\"><param name=\"text\">&#" + std::string(zeros, '0') + "65;</param></function>");
}

TEST(TurnParser, NearMissesComeOutWhole) {
  std::mt19937 random(1);
  for (const std::string text : {"a < b", "<tool_", "<toolbox>", "<tool_call", "a <tool_callx>", "<tool_call>", "<thin",
                                 "x<tool_call>y", "<tool_call>{", "<tool_call>{\"name\":1}</tool_call>", "\n\n", "a\n\n",
                                 "<tool_call>\nnothing\n</tool_call> and on"}) {
    const Turn turn = parse_every_way(format_of(ToolFormat::hermes), tools(), text, random);
    EXPECT_EQ(turn, (Turn{"", text, {}})) << text;
  }
}

TEST(TurnParser, ABackslashThatEscapesNothingIsMended) {
  const Turn turn = whole("<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":\"\\d\"}}</tool_call>");
  EXPECT_EQ(turn, (Turn{"", "", {{"f", R"({"x":"\\d"})", ""}}}));
}

TEST(TurnParser, FaultsThatModelsMakeAreMended) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"name": "f", "arguments": {"a": 1,}})", R"({"a": 1})"},
      {R"({"name": "f", "arguments": {"a": True, "b": None}})", R"({"a": true, "b": null})"},
      {R"({"name": "f", "arguments": {'a': 'it\'s "x"'}})", R"({"a": "it's \"x\""})"},
      {R"({"name": "f", "arguments": {"a": [1, 2}})", R"({"a": [1, 2]})"},
      {R"({"name": "f", "arguments": {"a": {"b": 1}})", R"({"a": {"b": 1}})"},
      {R"({"name": "f", "arguments": "{\"a\": 1}"})", R"({"a": 1})"},
      {R"({"function": {"name": "f", "arguments": {"a": 1}}})", R"({"a": 1})"},
      {R"({"type": "function", "function": {"name": "f", "arguments": {"a": 1}}})", R"({"a": 1})"},
      {R"({"function": "f", "arguments": {"a": 1}})", R"({"a": 1})"},
      {R"({"arguments": {"a": 1}, "name": "f"})", R"({"a": 1})"},
      {R"({"name": "f", "parameters": {"a": 1}})", R"({"a": 1})"},
      {R"({"name": "f", "arguments": null})", "{}"},
      {R"({"name": "f"})", "{}"},
      {R"({"name": "f", "a": 1})", R"({"a": 1})"},
      {"```json\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n```", R"({"a": 1})"},
      {R"([{"name": "f", "arguments": {"a": 1}}])", R"({"a": 1})"},
      {R"({"name": "f", "arguments": {"a": 1}}})", R"({"a": 1})"},
      {R"({"name": "f", "arguments": {"a": hello world, "b": 2}})", R"({"a": "hello world", "b": 2})"},
      {R"({"name": "f", "arguments": {a: 1 b: 2}})", R"({"a": 1, "b": 2})"},
      {R"({"name": "f", "arguments": {"a": "\ud83d\ude00 \ud83d x"}})", R"({"a": "\ud83d\ude00 \ufffd x"})"},
      {"{\"name\": \"f\", \"arguments\": {\"a\": \"x\ny\tz\"}}", R"({"a": "x\ny\tz"})"},
      {R"({"name": "f", "arguments": {"a": 1e999, "b": 01}})", R"({"a": "1e999", "b": "01"})"},
  };
  std::mt19937 random(2);
  for (const auto& [body, arguments] : cases) {
    const std::string text = "<tool_call>\n" + body + "\n</tool_call>";
    const Turn turn = without_ids(parse_every_way(format_of(ToolFormat::hermes), tools(), text, random));
    EXPECT_EQ(turn, (Turn{"", "", {{"f", arguments, ""}}})) << body;
  }
}

TEST(TurnParser, ACallThatTheEndCutsIsClosedOnceItHasBegunAndTextBefore) {
  EXPECT_EQ(whole("<tool_call>{\"name\": \"f\", \"argu"), (Turn{"", "<tool_call>{\"name\": \"f\", \"argu", {}}));
  EXPECT_EQ(whole("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1"), (Turn{"", "", {{"f", R"({"a": 1})", ""}}}));
  TurnParser cut(format_of(ToolFormat::hermes), tools(), {});
  cut.add(-1, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"hal");
  cut.finish();
  EXPECT_TRUE(cut.is_cut());
  TurnParser closed(format_of(ToolFormat::hermes), tools(), {});
  closed.add(-1, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"whole\"}");
  closed.finish();
  EXPECT_FALSE(closed.is_cut());
}

TEST(TurnParser, TextBehindTheLastCallIsContentAndSpaceBetweenCallsIsNot) {
  const std::string call = "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
  EXPECT_EQ(whole("A\n\n" + call + " \n " + call + "\nDone."),
            (Turn{"", "A\nDone.", {{"f", "{}", ""}, {"f", "{}", ""}}}));
  EXPECT_EQ(whole(call + "</tool_call>\n"), (Turn{"", "", {{"f", "{}", ""}}}));
}

TEST(TurnParser, IndicesAndIdsOfParallelCallsDiffer) {
  const std::string call = "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
  const Turn turn = parse_whole(format_of(ToolFormat::hermes), tools(), call + call, {.seed = 7});
  ASSERT_EQ(turn.calls.size(), 2u);
  EXPECT_NE(turn.calls[0].id, turn.calls[1].id);
  for (const Call& one : turn.calls) {
    ASSERT_EQ(one.id.size(), 29u);
    EXPECT_TRUE(one.id.starts_with("call_"));
    EXPECT_TRUE(std::ranges::all_of(one.id.substr(5), [](unsigned char c) { return std::isalnum(c) != 0; }));
  }
  EXPECT_EQ(turn, parse_whole(format_of(ToolFormat::hermes), tools(), call + call, {.seed = 7}));
  EXPECT_NE(turn, parse_whole(format_of(ToolFormat::hermes), tools(), call + call, {.seed = 8}));
  const Turn mistral = parse_whole(format_of(ToolFormat::mistral), tools(), "[TOOL_CALLS]f[ARGS]{}");
  EXPECT_EQ(mistral.calls.at(0).id.size(), 9u);
}

TEST(TurnParser, WithoutParallelCallsTheFirstWholeCallEndsTheTurn) {
  TurnParser parser(format_of(ToolFormat::hermes), tools(), {.is_parallel = false});
  Turn turn;
  collect(turn, parser.add(-1, kStream.substr(0, kStream.find("</tool"))));
  EXPECT_TRUE(parser.is_over());
  collect(turn, parser.add(-1, kStream.substr(kStream.find("</tool"))));
  collect(turn, parser.finish());
  EXPECT_EQ(without_ids(turn), (Turn{"", "Hi ", {{"f", R"({"x":"</b> \\d+"})", ""}}}));
}

TEST(TurnParser, WithoutToolsNothingIsACall) {
  EXPECT_EQ(parse_whole(format_of(ToolFormat::hermes), {}, kStream), (Turn{"", kStream, {}}));
}

TEST(TurnParser, UnknownNamesPass) {
  EXPECT_EQ(whole("<tool_call>{\"name\":\"other\",\"arguments\":{}}</tool_call>").calls.at(0).name, "other");
}

TEST(TurnParser, ArgumentsStreamAsTheyCome) {
  TurnParser parser(format_of(ToolFormat::hermes), tools(), {});
  parser.add(-1, "<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":\"");
  for (const std::string word : {"one ", "two ", "three "}) {
    const auto pieces = parser.add(-1, word);
    ASSERT_EQ(pieces.size(), 1u);
    EXPECT_EQ(pieces[0].kind, TurnPiece::Kind::arguments);
    EXPECT_EQ(pieces[0].text, word);
  }
}

TEST(TurnParser, ContentIsHeldBackNoLongerThanNeeded) {
  TurnParser parser(format_of(ToolFormat::hermes), tools(), {});
  const auto text_of = [&parser](std::string_view text) {
    std::string out;
    for (const TurnPiece& piece : parser.add(-1, text)) out += piece.text;
    return out;
  };
  EXPECT_EQ(text_of("a <"), "a ");
  EXPECT_EQ(text_of("b"), "<b");
  EXPECT_EQ(text_of("<tool_cal"), "");
  EXPECT_EQ(text_of(" x"), "<tool_cal x");
  EXPECT_EQ(text_of("y\n"), "y");
  EXPECT_EQ(text_of("z"), "\nz");
}

// A vocabulary with tokens for the markers, as turn_format_of() notes it.
TurnFormat with_tokens(bool is_strict) {
  TurnFormat format = format_of(ToolFormat::hermes);
  format.token_texts = {{1, "<tool_call>"}, {2, "</tool_call>"}, {3, "<think>"}, {4, "</think>"}};
  format.is_strict = is_strict;
  return format;
}

TEST(TurnParser, InStrictModeMarkersAreTokensOnly) {
  const std::string body = "{\"name\":\"f\",\"arguments\":{}}";
  for (const bool is_strict : {false, true}) {
    TurnParser parser(with_tokens(is_strict), tools(), {});
    Turn turn;
    collect(turn, parser.add(3, "<think>"));
    collect(turn, parser.add(9, "say </think"));
    collect(turn, parser.add(9, "> no"));
    collect(turn, parser.add(4, "</think>"));
    collect(turn, parser.add(9, "<tool_call>" + body + "</tool_call>"));
    collect(turn, parser.add(1, ""));  // not shown, but there
    collect(turn, parser.add(9, body));
    collect(turn, parser.add(2, "</tool_call>"));
    collect(turn, parser.finish());
    EXPECT_EQ(turn.calls.size(), is_strict ? 1u : 2u);
    EXPECT_EQ(turn.reasoning, is_strict ? "say </think> no" : "say ");
    EXPECT_EQ(turn.content, is_strict ? "<tool_call>" + body + "</tool_call>" : " no");
  }
}

TEST(TurnParser, AQuotedReasoningMarkerInContentIsTextWhereTheVocabularyHasATokenForIt) {
  Turn turn = parse_whole(with_tokens(false), tools(), "Use the <think> tag and </think> too.");
  EXPECT_EQ(turn, (Turn{"", "Use the <think> tag and </think> too.", {}}));
}

}  // namespace
}  // namespace godwit::text
