// JSON Schemas: what is enforced, what is refused by name, and what is left out and said so.
#include <gtest/gtest.h>

#include "text/test_grammars.h"

namespace godwit::text {
namespace {

using enum GrammarKind;

struct GrammarSchema : ::testing::Test, ByteGrammars {
  bool valid(const std::string& schema, std::string_view text) const {
    return accepts(json_schema, schema, text);
  }
  std::string refused(const std::string& schema) const { return refusal(json_schema, schema); }
  std::vector<std::string> notes(const std::string& schema) const {
    return compile(json_schema, schema, false)->notes();
  }
};

TEST_F(GrammarSchema, PatternsAreThoseOfJsonSchemaBehindTheJsonEscapes) {
  const auto pattern = [](std::string_view text) {
    return R"({"type":"string","pattern":")" + std::string(text) + "\"}";
  };
  const std::string one = pattern(R"(^\\d{2}-\\w+$)");
  EXPECT_TRUE(valid(one, R"("12-a_9")"));
  EXPECT_FALSE(valid(one, R"("1-a")"));
  EXPECT_FALSE(valid(one, R"("12-")"));
  const std::string two = pattern(R"(^https:\\/\\/x\\.y$)");
  EXPECT_TRUE(valid(two, R"("https://x.y")"));
  EXPECT_FALSE(valid(two, R"("https:xx.y")"));
  EXPECT_TRUE(valid(pattern(R"(\\S)"), R"(" a ")"));
  EXPECT_FALSE(valid(pattern(R"(\\S)"), R"("  ")"));
  const std::string four = pattern("^(a|b)?c{2,3}$");
  for (const auto* good : {"\"cc\"", "\"acc\"", "\"bccc\""}) EXPECT_TRUE(valid(four, good)) << good;
  for (const auto* bad : {"\"c\"", "\"abcc\"", "\"cccc\"", "\"ccd\""}) EXPECT_FALSE(valid(four, bad)) << bad;
  const std::string five = pattern(R"(^[^\"\\\\]*$)");
  EXPECT_TRUE(valid(five, R"("a'b")"));
  EXPECT_FALSE(valid(five, R"("a\"b")")) << "the value holds a quote";
  EXPECT_FALSE(valid(five, R"("a\\b")"));
  EXPECT_TRUE(valid(pattern(R"(^[\"\\\\]{2}$)"), R"("\"\\")")) << "two characters in four";
}

TEST_F(GrammarSchema, LookAheadIsRefusedWithPathAndPatternOrRelaxedAndSaidSo) {
  const std::string schema =
      R"({"type":"object","properties":{"a":{"type":"string","pattern":"(?=a)b"}},"required":["a"]})";
  EXPECT_TRUE(holds(refused(schema), "#/properties/a/pattern"));
  EXPECT_TRUE(holds(refused(schema), "(?=a)b"));
  ASSERT_EQ(notes(schema).size(), 1u);
  EXPECT_TRUE(holds(notes(schema)[0], "#/properties/a/pattern"));
  const auto relaxed = compile(json_schema, schema, false);
  EXPECT_TRUE(accepts(relaxed, R"({"a":"zz"})"));
  EXPECT_FALSE(accepts(relaxed, R"({"a":1})")) << "the rest is enforced";
}

TEST_F(GrammarSchema, APatternCountsCodePoints) {
  const std::string schema = R"({"type":"string","pattern":"^.{3}$"})";
  EXPECT_TRUE(valid(schema, "\"\xE6\x97\xA5\xE6\x9C\xAC\xF0\x9F\x8C\x8D\""));
  EXPECT_FALSE(valid(schema, "\"\xE6\x97\xA5\""));
}

TEST_F(GrammarSchema, WhatCannotBeEnforcedIsNamed) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"not":{"type":"string"}})", "#/not"},
      {R"({"type":"array","uniqueItems":true})", "#/uniqueItems"},
      {R"({"type":"array","items":{"type":"array","contains":{}}})", "#/items/contains"},
      {R"({"if":{},"then":{"type":"string"}})", "#/if"},
      {R"({"type":"object","propertyNames":{"pattern":"^a"}})", "#/propertyNames"},
      {R"({"type":"object","properties":{"a/b":{"unevaluatedItems":false}}})",
       "#/properties/a~1b/unevaluatedItems"},
      {R"({"type":"string","format":"horoscope"})", "#/format"},
      {R"({"type":"object","properties":{"a":{},"b":{}},"maxProperties":1})", "#/maxProperties"},
      {R"({"oneOf":[{"type":"integer"},{"type":"number","minimum":2}]})", "#/oneOf"},
      {R"({"$ref":"#/$defs/t","$defs":{"t":{"dependentRequired":{"a":["b"]}}}})",
       "#/$defs/t/dependentRequired"},
  };
  for (const auto& [schema, path] : cases) {
    EXPECT_TRUE(holds(refused(schema), path + ":")) << schema;
    ASSERT_EQ(notes(schema).size(), 1u) << schema;
    EXPECT_TRUE(notes(schema)[0].starts_with(path + ":")) << notes(schema)[0];
  }
  for (const auto* neutral :
       {R"({"type":"array","uniqueItems":false})", R"({"type":"integer","format":"int32"})",
        R"({"title":"T","description":"d","default":1,"examples":[1],"deprecated":true,"x-a":1})"})
    EXPECT_EQ(refused(neutral), "") << neutral;
}

TEST_F(GrammarSchema, OptionsOfOneOfThatExcludeEachOtherAreEnforced) {
  const std::string pets = R"({"$defs":{
    "cat":{"type":"object","properties":{"kind":{"const":"cat","type":"string"},"lives":{"type":"integer"}},"required":["kind","lives"]},
    "dog":{"type":"object","properties":{"kind":{"const":"dog","type":"string"},"name":{"type":"string"}},"required":["kind","name"]}},
    "oneOf":[{"$ref":"#/$defs/cat"},{"$ref":"#/$defs/dog"}],
    "discriminator":{"propertyName":"kind","mapping":{"cat":"#/$defs/cat","dog":"#/$defs/dog"}}})";
  EXPECT_TRUE(valid(pets, R"({"kind":"cat","lives":9})"));
  EXPECT_TRUE(valid(pets, R"({"kind": "dog", "name": "Rex"})"));
  EXPECT_FALSE(valid(pets, R"({"kind":"dog","lives":9})"));
  EXPECT_TRUE(
      valid(R"({"oneOf":[{"type":"null"},{"enum":["a"]},{"const":"b"},{"type":"boolean"}]})", "\"b\""));
}

TEST_F(GrammarSchema, ReferencesOfEveryFormAndRecursion) {
  EXPECT_TRUE(valid(R"({"$ref":"#/definitions/a~1b%20c","definitions":{"a/b c":{"const":5}}})", "5"));
  EXPECT_TRUE(valid(R"({"$ref":"#here","$defs":{"x":{"$anchor":"here","const":6}}})", "6"));
  const std::string list =
      R"({"type":"object","properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["next"]})";
  EXPECT_TRUE(valid(list, R"({"next":{"next":{"next":null}}})"));
  EXPECT_TRUE(holds(refused(R"({"$ref":"https://example.org/x.json"})"), "#/$ref"));
  EXPECT_TRUE(holds(refused(R"({"$ref":"#/nowhere"})"), "#/$ref"));
}

TEST_F(GrammarSchema, WhatNothingFiniteSatisfiesIsRefused) {
  for (const auto* schema :
       {R"({"$ref":"#"})", R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})",
        R"({"type":"array","items":{"$ref":"#"},"minItems":1})", "false",
        R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}}})"})
    EXPECT_NE(refusal(json_schema, schema, false), "") << schema;
  EXPECT_EQ(refused(R"({"type":"array","items":{"$ref":"#"}})"), "");
}

TEST_F(GrammarSchema, JsonComesCompactAndInTheOrderOfTheSchema) {
  const std::string schema =
      R"({"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"boolean"}},"required":["a","b"],"additionalProperties":false})";
  EXPECT_TRUE(valid(schema, R"({"b":1,"a":true})"));
  EXPECT_TRUE(valid(schema, R"({"b": 1, "a": true})"));
  EXPECT_FALSE(valid(schema, R"({"a":true,"b":1})"));
  for (const auto* loose : {"{ \"b\":1,\"a\":true}", "{\"b\":  1,\"a\":true}", "{\"b\":1,\n\"a\":true}",
                            "{\"b\":1,\"a\":true}\n"})
    EXPECT_FALSE(valid(schema, loose)) << loose;
  EXPECT_FALSE(accepts(json_object, "", "[1]"));
  EXPECT_TRUE(accepts(json_object, "", R"({"a": [1, {"b": null}], "c": "\u0007"})"));
}

TEST_F(GrammarSchema, NullableAddsNull) {
  const std::string schema = R"({"type":"string","nullable":true,"maxLength":2})";
  EXPECT_TRUE(valid(schema, "null"));
  EXPECT_TRUE(valid(schema, "\"ab\""));
  EXPECT_FALSE(valid(schema, "\"abc\""));
}

TEST_F(GrammarSchema, DamagedSchemasSayWhere) {
  EXPECT_TRUE(holds(refused("{\"type\":"), "line 1 column 8"));
  EXPECT_TRUE(holds(refused("[1]"), "#:"));
  EXPECT_TRUE(holds(refused(R"({"properties":{"a":3}})"), "#/properties/a:"));
  EXPECT_TRUE(holds(refused(R"({"minItems":-1,"type":"array"})"), "#/minItems:"));
  EXPECT_TRUE(holds(refused(R"({"type":"wombat"})"), "wombat"));
}

TEST_F(GrammarSchema, ASchemaInsideOfALarkGrammarIsTreatedTheSame) {
  const std::string grammar =
      "start: \"<call>\" args \"</call>\"\nargs: %json "
      "{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"integer\"}},\"required\":[\"x\"],"
      "\"additionalProperties\":false}\n";
  EXPECT_TRUE(accepts(lark, grammar, "<call>{\"x\":1}</call>"));
  EXPECT_FALSE(accepts(lark, grammar, "<call>{\"x\":\n1}</call>"));
  EXPECT_TRUE(holds(refusal(lark, "start: %json {\"not\":{}}"), "#/not"));
}

}  // namespace
}  // namespace godwit::text
