// GBNF, regular expressions and choices.
#include <gtest/gtest.h>

#include "text/test_grammars.h"

namespace godwit::text {
namespace {

using enum GrammarKind;

struct GrammarText : ::testing::Test, ByteGrammars {
  void expect(GrammarKind kind, const std::string& grammar, std::vector<std::string> good,
              std::vector<std::string> bad) const {
    const auto compiled = compile(kind, grammar);
    for (const std::string& text : good) EXPECT_TRUE(accepts(compiled, text)) << grammar << " <- " << text;
    for (const std::string& text : bad) EXPECT_FALSE(accepts(compiled, text)) << grammar << " <- " << text;
  }
};

TEST_F(GrammarText, GbnfIsReadAsLlamaCppReadsIt) {
  expect(gbnf, "root ::= \"yes\" | \"no\"  # an answer", {"yes", "no"}, {"", "y", "yesno", "maybe"});
  expect(gbnf, "root ::= [a-c]+ [^0-9\\n]? \"\\x41\\u00e9\\\"\"", {"aA\xC3\xA9\"", "abc-A\xC3\xA9\""},
         {"A\xC3\xA9\"", "a1A\xC3\xA9\""});
  expect(gbnf, "root ::= (\"a\" |\n  \"b\"\n) item{2,3}\nitem ::= \"x\"\n  | \"y\"", {"axy", "bxxx"},
         {"ax", "axxxx", "xx"});
  expect(gbnf, "root ::= . .", {"ab", "\xE6\x97\xA5\n"}, {"a", "abc"});
  expect(gbnf, "root ::= [\\u{1F300}-\\u{1F37F}]+", {"\xF0\x9F\x8C\x8D"}, {"", "a"});
  expect(gbnf, "root ::= \"a\"{0} \"b\" \"\"", {"b"}, {"ab", ""});
}

TEST_F(GrammarText, GbnfThatRefersToItself) {
  const std::string json =
      "root ::= object\n"
      "value ::= object | array | string | number | (\"true\" | \"false\" | \"null\") ws\n"
      "object ::= \"{\" ws ( string \":\" ws value (\",\" ws string \":\" ws value)* )? \"}\" ws\n"
      "array ::= \"[\" ws ( value (\",\" ws value)* )? \"]\" ws\n"
      "string ::= \"\\\"\" ( [^\"\\\\\\x7F\\x00-\\x1F] | \"\\\\\" ([\"\\\\bfnrt] | \"u\" [0-9a-fA-F]{4}) )* "
      "\"\\\"\" ws\n"
      "number ::= (\"-\"? ([0-9] | [1-9] [0-9]{0,15})) (\".\" [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws\n"
      "ws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n";
  expect(gbnf, json, {"{}", R"({"a": [1, -2.5e3, {"b":"c\n\u0041"}], "d" :null})", "{\n  \"x\":true}"},
         {"[]", "{", R"({"a":01})", R"({"a"  :1})", "{\"a\":\"\x01\"}"});
  expect(gbnf, "root ::= \"(\" root \")\" | \"x\"", {"x", "(x)", "((x))"}, {"", "(x", "()"});
  expect(gbnf, "root ::= ws \"a\" ws\nws ::= ([ \\t\\n] ws)?", {"a", " \n a\t"}, {" ", "b"});
  expect(gbnf, "root ::= [a-z]+ \"end\"",
         {"end"
          "end",
          "xend"},
         {"end", "x"});
}

TEST_F(GrammarText, DamagedGbnfSaysWhere) {
  const std::pair<const char*, const char*> cases[] = {
      {"root ::= \"a", "line 1, column 10"},        {"root ::= a\n", "line 1, column 10"},
      {"rot ::= \"a\"", "\"root\" is not defined"}, {"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1"},
      {"root ::= (\"a\"", "\")\" is expected"},     {"root ::= \"\\q\"", "line 1, column 12"},
      {"root ::= [z-a]", "wrong way round"},        {"root ::= \"a\"{3,2}", "wrong way round"},
      {"root ::= \"a\"{99999}", "repetitions"},     {"", "\"root\""}};
  for (const auto& [grammar, why] : cases) EXPECT_TRUE(holds(refusal(gbnf, grammar), why)) << grammar;
}

TEST_F(GrammarText, RegularExpressionsCoverTheWholeText) {
  expect(regex, R"(^\d{2}-\w+$)", {"12-a_9"}, {"1-a", "12-", "x12-a", "12-a "});
  expect(regex, R"(https:\/\/x\.y)", {"https://x.y"}, {"https:xx.y"});
  expect(regex, R"(\S)", {"a", "\xC3\xA9"}, {" ", "ab"});
  expect(regex, "(a|b)?c{2,3}", {"cc", "acc", "bccc"}, {"c", "abcc", "cccc"});
  expect(regex, R"([^"\\]*)", {"", "a'b\n"}, {"a\"b", "\\"});
  expect(regex, "^.{3}$", {"\xE6\x97\xA5\xE6\x9C\xAC\xF0\x9F\x8C\x8D"}, {"ab", "abcd"});
  EXPECT_TRUE(holds(refusal(regex, "(?=a)b"), "look-around"));
  EXPECT_TRUE(holds(refusal(regex, "a(b"), "unclosed group"));
  for (const auto* bad : {"\\1", "a\\", "[z-a]", "\\bword"}) EXPECT_NE(refusal(regex, bad), "") << bad;
}

TEST_F(GrammarText, ChoicesThatBeginAlikeAreAllReachable) {
  expect(choice, R"(["a","ab","abc d","\"q\".*"])", {"a", "ab", "abc d", "\"q\".*"},
         {"", "abc", "b", "\"q\"xx"});
  EXPECT_NE(refusal(choice, "[]"), "");
  EXPECT_NE(refusal(choice, "[1]"), "");
}

TEST_F(GrammarText, AGrammarOfTheEmptyTextIsOverAtOnce) {
  for (const auto& [kind, text] :
       {std::pair{regex, ""}, {choice, R"([""])"}, {lark, "start: \"\""}, {gbnf, "root ::= \"\""}}) {
    GrammarMatcher matcher(compile(kind, text));
    EXPECT_TRUE(matcher.is_stopped()) << text;
    EXPECT_TRUE(matcher.is_complete()) << text;
  }
  GrammarMatcher matcher(compile(choice, R"(["ab"])"));
  EXPECT_FALSE(matcher.is_stopped());
  matcher.accept('a');
  matcher.accept('b');
  EXPECT_TRUE(matcher.is_stopped());
}

TEST_F(GrammarText, LarkCanAskForTokensAndNothingElseCanBringThem) {
  const auto compiled = compile(lark, "start: <[256]> \"a\" | \"b\"");
  EXPECT_TRUE(has_bit(GrammarMatcher(compiled).mask(), 'b'));
  GrammarMatcher anything(compile(regex, "(?s:.*)"));
  anything.accept('x');
  EXPECT_FALSE(has_bit(anything.mask(), 0xFF));
  EXPECT_TRUE(
      holds(refusal(lark, "start: /./\n%llguidance {\"allow_invalid_utf8\":true}"), "allow_invalid_utf8"));
}

}  // namespace
}  // namespace godwit::text
