#include "serve/logprobs.h"

#include <cmath>
#include <limits>

#include "serve/prompt_logprobs.h"
#include "support/serve_fixture.h"

namespace godwit::serve {
namespace {

decode::TokenEvent event(int id, std::string text, double logprob = -1) {
  decode::TokenEvent made;
  made.id = id;
  made.text = std::move(text);
  made.logprob = decode::TokenLogprob{id, logprob};
  return made;
}

decode::TokenEvent last(decode::TokenEvent made, std::optional<std::string> stop = std::nullopt) {
  made.finish = decode::FinishReason::stop;
  made.stop_match = std::move(stop);
  return made;
}

std::string joined(const std::vector<LogprobEntry>& entries) {
  std::string bytes;
  for (const auto& entry : entries) bytes += entry.bytes;
  return bytes;
}

struct LogprobsTest : ServeFixture {
  // Feeds the events and checks that at every moment the entries spell what was shown.
  std::vector<LogprobEntry> feed(const std::vector<decode::TokenEvent>& events) {
    VisibleLogprobs visible(tokenizer);
    std::vector<LogprobEntry> all;
    std::string shown;
    for (const auto& one : events) {
      shown += one.text;
      for (auto& entry : visible.add(one)) all.push_back(std::move(entry));
      EXPECT_TRUE(shown.starts_with(joined(all))) << "no entry is ahead of its text";
    }
    EXPECT_EQ(joined(all), shown);
    return all;
  }
};

TEST_F(LogprobsTest, TheTokensOfACharacterLeaveTogetherWithIt) {
  const auto all = feed({event(0xF0, ""), event(0x9F, ""), event(0x98, ""), event(0xB8, "\xF0\x9F\x98\xB8"),
                         event('a', "a"), last(event(kImEnd, ""))});
  ASSERT_EQ(all.size(), 5u) << "the end token is not visible";
  EXPECT_EQ(all[0].bytes, "\xF0");
  EXPECT_EQ(all[3].text_offset, 0u);
  EXPECT_EQ(all[4].text_offset, 1u) << "offsets count code points";
}

TEST_F(LogprobsTest, BytesThatTurnOutToBeNoCharacterTakeTheirPlaceBeforeTheTokenThatShowedIt) {
  VisibleLogprobs visible(tokenizer);
  EXPECT_TRUE(visible.add(event(0xE4, "")).empty());
  const auto both = visible.add(event('x', "\xEF\xBF\xBDx"));
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].text_offset, 0u);
  EXPECT_EQ(both[1].text_offset, 1u);
}

TEST_F(LogprobsTest, WhatAStopStringSwallowsHasNoEntry) {
  // "ab" then a stop string "cd" that is held back until it is complete.
  const auto all = feed({event('a', "a"), event('b', "b"), event('c', ""), last(event('d', ""), "cd")});
  EXPECT_EQ(joined(all), "ab");
}

TEST_F(LogprobsTest, TextThatWasHeldBackInVainBringsItsEntries) {
  const auto all =
      feed({event('a', "a"), event('c', ""), event('x', "cx"), event('c', ""), last(event(-1, "c"))});
  EXPECT_EQ(joined(all), "acxc");
}

TEST_F(LogprobsTest, ATokenThatAStopStringCutsInHalfKeepsItsVisibleBytes) {
  // A vocabulary with longer tokens: "abc<" is one, and the stop string begins inside it.
  Json json = testing::byte_tokenizer_json({"<|end|>"});
  json["added_tokens"].push_back({{"id", 257},
                                  {"content", "abc<"},
                                  {"single_word", false},
                                  {"lstrip", false},
                                  {"rstrip", false},
                                  {"normalized", false},
                                  {"special", false}});
  tokenizer = text::Tokenizer::from_json(dump_json(json), "test");
  const auto all = feed({event(257, "abc"), last(event('/', ""), "</")});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].bytes, "abc");
}

TEST_F(LogprobsTest, ChatEntriesCarryRawBytesAndFiniteValues) {
  LogprobEntry entry{.id = 0xE4, .logprob = -std::numeric_limits<double>::infinity(), .bytes = "\xE4"};
  entry.top = {{'a', 0.0000001}, {kImEnd, std::nan("")}};
  const Json json = Json::parse(dump_json(chat_logprob_json(entry, tokenizer)));
  EXPECT_EQ(json["bytes"], Json::array({0xE4}));
  EXPECT_EQ(json["token"], "\xEF\xBF\xBD");
  EXPECT_EQ(json["logprob"], -9999.0);
  EXPECT_EQ(json["top_logprobs"][0], Json::parse(R"({"token":"a","logprob":0.0,"bytes":[97]})"));
  EXPECT_EQ(json["top_logprobs"][1], Json::parse(R"({"token":"<|im_end|>","logprob":-9999.0,"bytes":null})"));
}

TEST_F(LogprobsTest, LegacyShapeHoldsTheTokenItselfBesideTheTop) {
  LegacyLogprobs legacy(tokenizer);
  legacy.add({.id = 'q', .bytes = "q"}, 0, /*is_first_of_prompt=*/true);
  legacy.add({.id = 'x', .logprob = -3, .bytes = "x", .top = {{'a', -1}, {0xE4, -2}}}, 1);
  EXPECT_EQ(legacy.json(), Json::parse(R"({"tokens":["q","x"],"token_logprobs":[null,-3.0],
      "top_logprobs":[null,{"a":-1.0,"bytes:\\xe4":-2.0,"x":-3.0}],"text_offset":[0,1]})"));
}

// Row t of the scripted logits is 10 at token t + 1 and 0 elsewhere.
TEST_F(LogprobsTest, APromptsTokensAreScoredByTheLogitsBeforeThem) {
  const double normaliser = std::log(std::exp(10.0) + 257);
  const auto entries = prompt_logprobs(generator, model, {9, 1, 7}, 2);
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_TRUE(entries[0].top.empty());
  // A sum of 258 doubles of one sign: relative error below 258 * 2^-53.
  EXPECT_NEAR(entries[1].logprob, 10 - normaliser, 1e-12);
  EXPECT_NEAR(entries[2].logprob, 0 - normaliser, 1e-12);
  EXPECT_EQ(entries[2].top[0].id, 2);
  EXPECT_EQ(entries[2].top[1].id, 0) << "ties go to the lowest id";
}

}  // namespace
}  // namespace godwit::serve
