// Constraints by scripted tokens: when masks begin, what they let through, and in which order they are made.
#include "decode/grammar_constraint.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <random>

#include "base/error.h"
#include "base/json.h"
#include "decode/grammar_source.h"
#include "decode/sampler.h"
#include "support/byte_tokenizer.h"

namespace godwit::decode {
namespace {

constexpr int kEnd = 256, kOpen = 257, kClose = 258, kCarrier = 259, kBlankCarrier = 260, kVocabulary = 300;
constexpr std::string_view kSchema =
    R"({"type":"object","properties":{"a":{"enum":[1]}},"required":["a"],"additionalProperties":false})";

bool may(TokenFilter& filter, int id) {
  const auto mask = filter.mask();
  return mask.empty() || (mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1);
}

int count(TokenFilter& filter) {
  int allowed = 0;
  for (const std::uint32_t word : filter.mask()) allowed += __builtin_popcount(word);
  return allowed;
}

struct GrammarConstraints : ::testing::Test {
  // Takes a text token by token, each of which must be allowed.
  void type(TokenFilter& filter, std::string_view text) {
    for (const char c : text) {
      ASSERT_TRUE(may(filter, static_cast<unsigned char>(c))) << c << " of " << text;
      filter.accept(static_cast<unsigned char>(c));
    }
  }
  std::shared_ptr<const TokenConstraint> schema() {
    return source.constraint(source.compile({text::GrammarKind::json_schema, std::string(kSchema), true}));
  }
  std::shared_ptr<const TokenConstraint> thinking(ReasoningStart start, int budget, bool with_schema = true) {
    return source.behind_reasoning("<think>", "</think>", start, budget, with_schema ? schema() : nullptr);
  }

  text::Tokenizer tokenizer = testing::byte_tokenizer({"<|end|>", "<think>", "</think>", "nk>{", "nk>\n"});
  GrammarSource source{tokenizer, {kEnd}, kVocabulary};
};

TEST_F(GrammarConstraints, AnAnswerIsMaskedFromItsFirstTokenAndOverAfterItsLast) {
  const auto filter = schema()->start();
  EXPECT_EQ(count(*filter), 1);
  type(*filter, R"({"a":1)");
  EXPECT_FALSE(filter->is_over());
  EXPECT_FALSE(may(*filter, kEnd));
  type(*filter, "}");
  EXPECT_TRUE(filter->is_over());
  EXPECT_TRUE(may(*filter, kEnd)) << "the mask of an answer that is over holds the end alone";
  EXPECT_EQ(count(*filter), 1);
}

TEST_F(GrammarConstraints, PaddedAndSpecialIdsNeverCome) {
  const auto filter = source.constraint(source.compile({text::GrammarKind::regex, "(?s:.*)"}))->start();
  type(*filter, "x");
  EXPECT_TRUE(may(*filter, kEnd));
  for (int id = kOpen; id < kVocabulary; ++id) EXPECT_FALSE(may(*filter, id)) << id;
}

// cases.md 9: free text until the closing marker, however the tokens split it.
TEST_F(GrammarConstraints, TheFirstMaskedStepIsTheFirstBehindTheMarker) {
  const std::vector<std::vector<int>> spellings = {
      {kClose}, {'<', '/', 't', 'h', 'i', 'n', 'k', '>'}, {'<', '<', '/', 't', 'h', 'i', kBlankCarrier}};
  for (const auto& spelling : spellings) {
    const auto filter = thinking(ReasoningStart::open, -1)->start();
    type(*filter, "ok {\"a\":2} </think </t");
    EXPECT_TRUE(may(*filter, '{'));
    EXPECT_TRUE(may(*filter, 'z'));
    EXPECT_FALSE(may(*filter, kEnd)) << "the answer is still to come";
    for (const int id : spelling) {
      ASSERT_TRUE(may(*filter, id));
      ASSERT_GT(count(*filter), 1);
      filter->accept(id);
    }
    EXPECT_EQ(count(*filter), 1);
    type(*filter, R"({"a":1})");
    EXPECT_TRUE(filter->is_over());
  }
}

TEST_F(GrammarConstraints, ATokenThatWouldCarryTextBehindTheMarkerIsBarred) {
  const auto filter = thinking(ReasoningStart::open, -1)->start();
  EXPECT_TRUE(may(*filter, kCarrier)) << "no marker has begun";
  type(*filter, "</thi");
  EXPECT_FALSE(may(*filter, kCarrier));
  EXPECT_TRUE(may(*filter, kBlankCarrier));
}

TEST_F(GrammarConstraints, ABudgetWritesTheMarkerAndTheGrammarFollows) {
  const auto filter = thinking(ReasoningStart::open, 3)->start();
  type(*filter, "abc");
  EXPECT_EQ(count(*filter), 1);
  ASSERT_TRUE(may(*filter, kClose));
  filter->accept(kClose);
  type(*filter, R"({"a":1})");
  EXPECT_TRUE(filter->is_over());

  const auto none = thinking(ReasoningStart::open, 0)->start();
  EXPECT_TRUE(may(*none, kClose));
  EXPECT_EQ(count(*none), 1);

  const auto alone = thinking(ReasoningStart::open, 1, /*with_schema=*/false)->start();
  EXPECT_TRUE(alone->mask().empty());
  alone->accept('x');
  EXPECT_EQ(count(*alone), 1);
  alone->accept(kClose);
  EXPECT_TRUE(alone->mask().empty());
  EXPECT_FALSE(alone->is_over());
}

TEST_F(GrammarConstraints, AModelThatOpensItsReasoningItselfMayDoSoOrNot) {
  const auto opens = thinking(ReasoningStart::may_open, -1)->start();
  EXPECT_EQ(count(*opens), 2);
  ASSERT_TRUE(may(*opens, kOpen));
  opens->accept(kOpen);
  type(*opens, "hm");
  opens->accept(kClose);
  type(*opens, R"({"a":1})");
  EXPECT_TRUE(opens->is_over());

  const auto answers = thinking(ReasoningStart::may_open, -1)->start();
  type(*answers, R"({"a":1})");
  EXPECT_TRUE(answers->is_over());
}

TEST_F(GrammarConstraints, AnAnswerThatIsTakenUpAgainGoesOnWhereItWas) {
  std::vector<int> made = {'h', 'm', kClose, '{', '"', 'a'};
  const auto constraint = thinking(ReasoningStart::open, 9);
  for (std::size_t cut = 0; cut <= made.size(); ++cut) {
    const auto straight = constraint->start();
    for (std::size_t i = 0; i < cut; ++i) straight->accept(made[i]);
    const auto resumed = constraint->start(std::span(made).first(cut));
    const auto a = straight->mask(), b = resumed->mask();
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << cut;
  }
}

TEST_F(GrammarConstraints, MasksAreMadeAheadAndTheEngineDoesNotWaitForThemBefore) {
  const auto worker = std::make_shared<MaskWorker>();
  const GrammarConstraint constraint(
      source.compile({text::GrammarKind::json_schema, std::string(kSchema), true}), worker);
  const auto filter = constraint.start();
  worker->drain();
  EXPECT_TRUE(may(*filter, '{'));
  std::promise<void> gate;
  std::atomic<bool> is_open = false;
  worker->post([future = gate.get_future().share(), &is_open] {
    future.wait();
    is_open = true;
  });
  filter->accept('{');  // returns although the worker is held up
  EXPECT_FALSE(filter->is_over());
  auto asked = std::async(std::launch::async, [&] {
    const bool allowed = may(*filter, '"');
    return std::pair(allowed, is_open.load());
  });
  gate.set_value();
  EXPECT_EQ(asked.get(), std::pair(true, true)) << "the mask came after what was posted before it";
}

TEST_F(GrammarConstraints, AFilterThatFailsIsAlone) {
  const auto constraint = schema();
  const auto good = constraint->start(), bad = constraint->start();
  EXPECT_THROW(bad->accept('x'), Error);
  EXPECT_THROW(constraint->start(std::vector<int>{'x'}), Error);
  type(*good, R"({"a":1})");
  EXPECT_TRUE(good->is_over());
}

// Random logits in place of a model: every answer that comes to its end is what was asked for.
TEST_F(GrammarConstraints, WhateverTheLogitsSayTheAnswerFits) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto constraint =
      source.constraint(source.compile({text::GrammarKind::json_schema, R"({"type":"object","properties":{
    "n":{"type":"integer","minimum":-5,"maximum":120},"s":{"type":"string","maxLength":6},"e":{"enum":["x","yz",null,3]},
    "l":{"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":3}},"required":["n","s","e","l"],
    "additionalProperties":false})",
                                        true}));
  std::normal_distribution<float> normal;
  for (int run = 0; run < 150; ++run) {
    Sampler sampler({.temperature = 1.5}, random(), 0);
    const auto filter = constraint->start();
    std::string text;
    for (int step = 0; step < 400 && !filter->is_over(); ++step) {
      std::vector<float> logits(kVocabulary);
      for (float& logit : logits) logit = normal(random);
      const int id = sampler.choose(logits, step, filter->mask());
      ASSERT_LT(id, 256) << text;
      text += static_cast<char>(id);
      filter->accept(id);
    }
    ASSERT_TRUE(filter->is_over()) << text;
    const Json value = parse_json(text, "answer");
    ASSERT_EQ(value.size(), 4u) << text;
    EXPECT_TRUE(value["n"].is_number_integer() && value["n"] >= -5 && value["n"] <= 120) << text;
    EXPECT_TRUE(value["s"].is_string()) << text;
    EXPECT_TRUE(value["e"] == "x" || value["e"] == "yz" || value["e"].is_null() || value["e"] == 3) << text;
    EXPECT_TRUE(value["l"].is_array() && !value["l"].empty() && value["l"].size() <= 3) << text;
  }
}

}  // namespace
}  // namespace godwit::decode
