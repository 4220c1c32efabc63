#include "text/grammar.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "base/error.h"
#include "text/test_grammars.h"
#include "text/utf8.h"

namespace godwit::text {
namespace {

const std::vector<std::string> kTokens = {"\xF0", "\x9F", "\x8C", "\xB8", "\xF0\x9F", "\x8C\xB8\xF0",
                                          "\x8E", "\xC3", "\x80", "\"",   "\xC0",     "\xC1",
                                          "\xF5", "\xFF", "a",    "\x8D", ""};
constexpr int kEnd = 16;  // special: it adds no text

std::shared_ptr<const GrammarVocabulary> vocabulary_of(const std::vector<std::string>& tokens, int end) {
  std::vector<GrammarToken> all;
  for (const std::string& bytes : tokens) all.push_back({bytes});
  return std::make_shared<const GrammarVocabulary>(all, std::set<int>{end});
}

GrammarMatcher matcher_of(const std::shared_ptr<const GrammarVocabulary>& vocabulary, GrammarKind kind,
                          std::string text, bool strict = true) {
  return GrammarMatcher(
      std::make_shared<const CompiledGrammar>(vocabulary, GrammarSpec{kind, std::move(text), strict}));
}

std::set<std::string> allowed(GrammarMatcher& matcher) {
  const auto mask = matcher.mask();
  std::set<std::string> out;
  for (std::size_t id = 0; id < kTokens.size(); ++id)
    if (mask[id / 32] >> (id % 32) & 1) out.insert(static_cast<int>(id) == kEnd ? "<end>" : kTokens[id]);
  return out;
}

using Set = std::set<std::string>;

TEST(Grammar, TokensThatHoldAPieceOfACharacterAreAllowedWhereTheyFit) {
  const auto vocabulary = vocabulary_of(kTokens, kEnd);
  GrammarMatcher matcher = matcher_of(vocabulary, GrammarKind::regex, "[\U0001F300-\U0001F37F]+");
  EXPECT_EQ(allowed(matcher), (Set{"\xF0", "\xF0\x9F"}));
  EXPECT_FALSE(matcher.is_complete());
  matcher.accept(0);
  EXPECT_EQ(allowed(matcher), Set{"\x9F"});
  matcher.accept(1);
  EXPECT_EQ(allowed(matcher), (Set{"\x8C", "\x8D", "\x8C\xB8\xF0"}));
  matcher.accept(5);
  EXPECT_EQ(allowed(matcher), Set{"\x9F"});
  EXPECT_FALSE(matcher.is_complete());
  matcher.accept(1);
  matcher.accept(2);
  matcher.accept(3);
  EXPECT_TRUE(matcher.is_complete());
  EXPECT_TRUE(allowed(matcher).contains("<end>"));
}

TEST(Grammar, AJsonStringTakesOnlyBytesOfCharacters) {
  const auto vocabulary = vocabulary_of(kTokens, kEnd);
  GrammarMatcher matcher = matcher_of(vocabulary, GrammarKind::json_schema, R"({"type":"string"})");
  matcher.accept(9);
  const Set start = allowed(matcher);
  EXPECT_TRUE(start.contains("\xC3"));
  for (const std::string never : {"\xC0", "\xC1", "\xF5", "\xFF", "\x80", "<end>"})
    EXPECT_FALSE(start.contains(never));
  matcher.accept(7);
  EXPECT_EQ(allowed(matcher), (Set{"\x9F", "\x8C", "\xB8", "\x8E", "\x80", "\x8D"}));
}

TEST(Grammar, EverySplitOfAValidTextIsAccepted) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(std::string(1, static_cast<char>(byte)));
  for (int i = 0; i < 44; ++i) {
    std::string token;
    for (unsigned size = 2 + random() % 3; size > 0; --size)
      token += static_cast<char>(0x80 + random() % 0x75);
    tokens.push_back(token);
  }
  tokens.push_back("");
  const auto vocabulary = vocabulary_of(tokens, static_cast<int>(tokens.size()) - 1);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (unsigned size = 1 + random() % 4; size > 0; --size) append_utf8(text, 0x1F300 + random() % 0x80);
    GrammarMatcher matcher = matcher_of(vocabulary, GrammarKind::regex, "[\U0001F300-\U0001F37F]+");
    for (std::size_t at = 0; at < text.size();) {
      std::vector<int> fits;
      for (std::size_t id = 0; id + 1 < tokens.size(); ++id)
        if (std::string_view(text).substr(at).starts_with(tokens[id])) fits.push_back(static_cast<int>(id));
      const int id = fits[random() % fits.size()];
      ASSERT_TRUE(matcher.mask()[id / 32] >> (id % 32) & 1) << text;
      matcher.accept(id);
      at += tokens[id].size();
    }
    EXPECT_TRUE(matcher.is_complete()) << text;
  }
}

TEST(Grammar, BadGrammarsAndTokensAreErrors) {
  const auto vocabulary = vocabulary_of(kTokens, kEnd);
  EXPECT_THROW(matcher_of(vocabulary, GrammarKind::regex, "(?=a)b"), Error);
  EXPECT_THROW(matcher_of(vocabulary, GrammarKind::json_schema, "{"), Error);
  EXPECT_THROW(matcher_of(vocabulary, GrammarKind::lark, "start: ("), Error);
  EXPECT_THROW(vocabulary_of(kTokens, 99), Error);
  GrammarMatcher matcher = matcher_of(vocabulary, GrammarKind::regex, "a");
  EXPECT_THROW(matcher.accept(9), Error);
  EXPECT_THROW(matcher.accept(1000), Error);
}

// What would be found out at the first token is found out by compiling.
TEST(Grammar, WhatNoTokenBeginsIsRefusedBeforeAnyAnswer) {
  const std::vector<GrammarToken> tokens = {{"a"}, {"ab"}, {"<end>", true}};
  const auto vocabulary = std::make_shared<const GrammarVocabulary>(tokens, std::set<int>{2});
  const auto first = [&](const char* regex) {
    const auto grammar = std::make_shared<const CompiledGrammar>(vocabulary, GrammarSpec{GrammarKind::regex, regex, true});
    return GrammarMatcher(grammar).mask().at(0);
  };
  EXPECT_EQ(first("a"), 0b001u);
  EXPECT_EQ(first("(ab)*"), 0b111u);
  try {
    first("b");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
  }
}

TEST(Grammar, AMaskIsTheSameWhereverTheMatcherCameFrom) {
  const ByteGrammars grammars;
  const auto grammar = grammars.compile(GrammarKind::regex, "ab|cd");
  GrammarMatcher matcher(grammar);
  const std::vector<std::uint32_t> first = matcher.mask();
  EXPECT_EQ(matcher.clone().mask(), first);
  matcher.accept('a');
  EXPECT_TRUE(has_bit(matcher.mask(), 'b') && !has_bit(matcher.mask(), 'c'));
  EXPECT_EQ(matcher.clone().mask(), matcher.mask());
  matcher.rollback(1);
  EXPECT_EQ(matcher.mask(), first);
  EXPECT_EQ(GrammarMatcher(grammar).mask(), first);
}

}  // namespace
}  // namespace godwit::text
