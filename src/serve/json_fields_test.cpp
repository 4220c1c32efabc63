#include "serve/json_fields.h"

#include <gtest/gtest.h>

#include "support/serve_fixture.h"

namespace godwit::serve {
namespace {

std::string body_refusal(const std::string& body) {
  return refusal_of([&] { parse_body(body); });
}

TEST(JsonFields, ABodyThatIsNotAJsonObjectIsRefused) {
  const std::string deep(10'000, '[');
  for (const std::string body : {"", "{", "[]", "\"x\"", "1", "{\"a\":NaN}", "{\"a\":1e400}", "{}x", "\xff"})
    EXPECT_EQ(body_refusal(body), ": invalid_json") << body;
  EXPECT_EQ(body_refusal(deep), ": invalid_json");
  EXPECT_EQ(body_refusal("{\"a\":\"\xc3\x28\"}"), ": invalid_json") << "invalid UTF-8";
}

TEST(JsonFields, AByteOrderMarkIsSkippedAndTheLastOfTwoEqualKeysWins) {
  EXPECT_EQ(parse_body("\xEF\xBB\xBF{\"a\":1,\"a\":2}")["a"], 2);
}

TEST(JsonFields, NullCountsAsAbsentForEveryKind) {
  const Json object = Json::parse(R"({"x": null})");
  const JsonFields in(object);
  EXPECT_EQ(in.boolean("x"), std::nullopt);
  EXPECT_EQ(in.integer("x", 1), std::nullopt);
  EXPECT_EQ(in.number("x", 1, 2), std::nullopt);
  EXPECT_EQ(in.string("x"), std::nullopt);
  EXPECT_EQ(in.array("x"), nullptr);
  EXPECT_EQ(in.object("x"), nullptr);
  EXPECT_TRUE(in.has("x"));
  EXPECT_FALSE(in.has("y"));
}

TEST(JsonFields, AnIntegerMayBeSpelledAsAFloat) {
  EXPECT_EQ(as_integer(Json::parse("16.0")), 16);
  EXPECT_EQ(as_integer(Json::parse("1e3")), 1000);
  EXPECT_EQ(as_integer(Json::parse("-9223372036854775808")), std::numeric_limits<std::int64_t>::min());
  for (const auto* text : {"16.5", "\"16\"", "true", "9223372036854775808", "1e19", "[1]"})
    EXPECT_EQ(as_integer(Json::parse(text)), std::nullopt) << text;
}

TEST(JsonFields, ErrorsNameTheFieldWithItsPathAndTheValue) {
  const Json object = Json::parse(R"({"n": "three", "deep": {"t": 5}})");
  const JsonFields in(object);
  try {
    in.integer("n", 1);
    FAIL();
  } catch (const RequestError& e) {
    EXPECT_EQ(e.message(), "'n' must be an integer, got \"three\"");
    EXPECT_EQ(e.fields().param, "n");
  }
  const JsonFields deep(*in.object("deep"), in.path_of("deep"));
  EXPECT_EQ(refusal_of([&] { deep.number("t", 0, 1); }), "deep.t: invalid_value");
}

TEST(JsonFields, ABoundThatIsOpenAboveIsSaidWithoutTheLargestDouble) {
  const Json object = Json::parse(R"({"t": -1})");
  const JsonFields in(object);
  constexpr double kMost = std::numeric_limits<double>::max();
  const auto message = [&](double least) {
    try {
      in.number("t", least, kMost);
    } catch (const RequestError& e) {
      return std::string(e.message());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message(0), "'t' must be at least 0, got -1");
  EXPECT_EQ(message(std::numeric_limits<double>::min()), "'t' must be greater than 0, got -1");
  EXPECT_EQ(message(-1), "accepted");
}

}  // namespace
}  // namespace godwit::serve
