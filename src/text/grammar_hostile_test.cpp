// Schemas, expressions and grammars made to take all time, memory or stack: each is refused or works, and the
// next honest one does.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "text/test_grammars.h"

namespace godwit::text {
namespace {

using enum GrammarKind;

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

// parts(0), parts(1), ... one after another.
std::string listed(int count, const std::function<std::string(int)>& part, std::string_view between) {
  std::string out;
  for (int i = 0; i < count; ++i) out += (i > 0 ? std::string(between) : "") + part(i);
  return out;
}

struct GrammarHostile : ::testing::Test, ByteGrammars {
  // Refused with a message, or of use for some tokens: an error there ends one answer.
  void survive(GrammarKind kind, const std::string& text) const {
    std::shared_ptr<const CompiledGrammar> grammar;
    try {
      grammar = compile(kind, text, false);
      GrammarMatcher matcher(grammar);
      for (int step = 0; step < 8 && !matcher.is_stopped(); ++step) {
        const auto mask = matcher.mask();
        int id = 0;
        while (id < 256 && !has_bit(mask, id)) ++id;
        if (id == 256) break;
        matcher.accept(id);
      }
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::invalid_argument) << e.what() << "\n" << text.substr(0, 300);
      EXPECT_LT(std::string_view(e.what()).size(), 5000u);
    }
  }
};

TEST_F(GrammarHostile, Schemas) {
  const auto chain = [](int count) {
    return R"({"$ref":"#/$defs/a0","$defs":{)" +
           listed(
               count,
               [&](int i) {
                 return "\"a" + std::to_string(i) +
                        R"(":{"type":"object","properties":{"n":{"$ref":"#/$defs/a)" +
                        std::to_string((i + 1) % count) + "\"}}}";
               },
               ",") +
           "}}";
  };
  const std::string options =
      R"({"anyOf":[)" +
      listed(
          12, [](int i) { return R"({"properties":{"p)" + std::to_string(i) + R"(":{"type":"integer"}}})"; },
          ",") +
      "]}";
  survive(json_schema, repeated("{\"items\":", 100) + "{}" + repeated("}", 100));
  survive(json_schema, repeated("{\"items\":", 5000) + "{}" + repeated("}", 5000));
  survive(json_schema, repeated("[", 100000));
  survive(json_schema, chain(5000));
  survive(json_schema, R"({"allOf":[)" +
                           listed(
                               12, [&](int) { return options; }, ",") +
                           "]}");
  survive(json_schema, R"({"oneOf":[)" +
                           listed(
                               1500, [](int) { return R"({"type":"object"})"; }, ",") +
                           "]}");
  survive(json_schema, R"({"enum":[)" +
                           listed(
                               15000, [](int i) { return std::to_string(i); }, ",") +
                           "]}");
  survive(
      json_schema,
      R"({"type":"array","minItems":999999,"maxItems":1000000,"items":{"type":"array","minItems":999999}})");
  survive(json_schema, R"({"type":"string","minLength":999999})");
  survive(json_schema, R"({"type":"string","pattern":"^(\\w{1,900}x){1,900}$","minLength":900})");
  survive(json_schema, R"({"type":"string","pattern":"^(a?){300}a{300}$"})");
  survive(
      json_schema,
      R"({"allOf":[)" +
          listed(
              40,
              [](int i) { return R"({"pattern":"a.{)" + std::to_string(10 + i) + R"(}b","type":"string"})"; },
              ",") +
          "]}");
  survive(json_schema, R"({"multipleOf":1e-300,"type":"number","minimum":-1e300,"maximum":1e300})");
  survive(json_schema, R"({"multipleOf":982451653,"type":"integer"})");
  survive(
      json_schema,
      R"({"x-guidance":{"whitespace_pattern":"(a*)*"},"patternProperties":{"^a":{},"a$":{},"(a|b)*":{}}})");
  survive(json_schema, R"({"type":"object","properties":{)" +
                           listed(
                               3000, [](int i) { return "\"k" + std::to_string(i) + "\":{}"; }, ",") +
                           "}}");
  EXPECT_TRUE(accepts(json_schema, R"({"type":"integer"})", "5"));
}

TEST_F(GrammarHostile, ExpressionsAndGrammars) {
  for (const std::string text :
       {"(a{1000}){1000}", "((a{100}){100}){100}", "(x+x+)+y", "(a|aa|aaa)*b{9999}", "(a?){400}a{400}",
        "(.*a){30}.*", "\\w{1,5000}\\w{1,5000}", "[a-z]{1,1000}([0-9]{1,1000}z)*"})
    survive(regex, text);
  survive(regex, repeated("(", 5000) + "a" + repeated(")", 5000));
  survive(regex, repeated("(a|b", 200) + repeated(")*", 200));
  survive(regex, repeated("a|", 16000) + "a");
  survive(lark, "start: a0\n" +
                    listed(
                        40,
                        [](int i) {
                          return "a" + std::to_string(i) + ": a" + std::to_string(i + 1) + " a" +
                                 std::to_string(i + 1);
                        },
                        "\n") +
                    "\na40: \"x\"");
  survive(lark, "start: A0\n" +
                    listed(
                        40,
                        [](int i) {
                          return "A" + std::to_string(i) + ": A" + std::to_string(i + 1) + " A" +
                                 std::to_string(i + 1);
                        },
                        "\n") +
                    "\nA40: \"x\"");
  survive(lark, "start: start start | \"a\" |");
  survive(lark, "start: " + repeated("(", 3000) + "\"a\"" + repeated(")", 3000));
  survive(lark, "start: x{1000000}\nx: y{1000000}\ny: \"a\"");
  survive(lark, "A: A \"a\"\nstart: A");
  survive(gbnf, "root ::= x0\n" +
                    listed(
                        60,
                        [](int i) {
                          return "x" + std::to_string(i) + " ::= x" + std::to_string(i + 1) + " x" +
                                 std::to_string(i + 1);
                        },
                        "\n") +
                    "\nx60 ::= \"a\"");
  survive(gbnf, "root ::= root");
  survive(gbnf, "root ::= root root | \"a\" |");
  survive(gbnf, "root ::= " + repeated("(", 5000));
  survive(gbnf, "root ::= ((([a-z]{9999}){9999}){9999}){9999}");
  survive(gbnf,
          listed(
              4500, [](int i) { return "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1); }, "\n"));
  survive(choice,
          "[" +
              listed(
                  8000, [](int i) { return "\"choice " + std::to_string(i * 7919 % 8000) + "\""; }, ",") +
              "]");
  EXPECT_TRUE(accepts(gbnf, "root ::= \"a\"+", "aa"));
}

TEST_F(GrammarHostile, DamagedTextsOfAllKinds) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::pair<GrammarKind, std::string> seeds[] = {
      {json_schema,
       R"({"type":"object","properties":{"a":{"type":["string","null"],"pattern":"^[a-z]+$"},"b":{"$ref":"#/$defs/x"}},"required":["a"],"$defs":{"x":{"anyOf":[{"enum":[1,"y"]},{"type":"array","items":{"$ref":"#"},"minItems":1}]}}})"},
      {regex, R"(^(\d{2,3}-[^a-f\n]+|(?i:xy)*?\p{L}.)+$)"},
      {lark,
       "start: item (\",\" item)* \nitem: /[a-z]+/ | \"(\" start \")\" | %json "
       "{\"type\":\"integer\"}\n%ignore / +/\n"},
      {gbnf, "root ::= (item | \"[\" root{2,3} \"]\")+ # c\nitem ::= [^\\]\\x41-Z]? \"\\u00e9\" .\n"}};
  const std::string letters = "\\\"'()[]{}*+?|^$-:,.#/%<>0129azAZ \n\t\xC3\xA9\xF0\x9F";
  for (int round = 0; round < 300; ++round) {
    auto [kind, text] = seeds[random() % std::size(seeds)];
    for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
      const std::size_t at = random() % (text.size() + 1);
      if (random() % 3 == 0)
        text.erase(at, random() % 5);
      else if (random() % 2)
        text.insert(at, 1, letters[random() % letters.size()]);
      else
        text.insert(at, text.substr(random() % text.size(), random() % 20));
    }
    survive(kind, text);
  }
}

}  // namespace
}  // namespace godwit::text
