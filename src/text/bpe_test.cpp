// The direct BPE construction and its merging against the model of the crate `tokenizers`, over vocabularies made by chance:
// merges in any order, twice, and to one token in several ways; equal tokens; text that no token spells.
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "text/test_vocabularies.h"
#include "text/tokenizer.h"

namespace godwit::text {
namespace {

const std::vector<std::string> kLetters = {"a", "b", "c", "d", "\xC3\xA9", "\xE2\x96\x81", "\xF0\x9F\x98\xB8"};

class RandomVocabulary {
 public:
  explicit RandomVocabulary(unsigned seed) : random_(seed) {
    out_.model = below(2) ? "gemma4" : "gpt2";
    out_.pre = below(2) ? "llama-bpe" : "gpt-2";  // the first ignores merges of words that are tokens
    add("<unk>", 2);
    if (out_.model == "gpt2") {
      for (int byte = 0; byte < 256; ++byte) add(alphabet_of_byte(static_cast<unsigned char>(byte)), 1);
    } else {
      for (std::size_t i = 0; i < kLetters.size() - below(3); ++i) add(kLetters[i], 1);
      if (below(2)) for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), 6);
      if (below(2)) out_.token_types[0] = 1;  // nothing is unknown: such text is left out
    }
    const int merges = 1 + below(60);
    for (int i = 0; i < merges; ++i) add_merge();
    std::vector<std::string> shuffled(out_.merges.begin(), out_.merges.end());
    std::ranges::shuffle(shuffled, random_);
    out_.merges = StringList(shuffled);
    out_.tokens.push_back(out_.tokens[below(static_cast<int>(out_.tokens.size()))]);  // has no text of its own
    out_.token_types.push_back(1);
    add_control_tokens(out_, {"<s>", "</s>"});
  }

  const GgufVocabulary& vocabulary() const { return out_; }

  std::string text() {
    std::string out;
    for (int left = below(40); left > 0; --left) {
      const int kind = below(12);
      out += kind == 0 ? " " : kind == 1 ? "</s>" : kind == 2 ? "\xE5\x98\x89" : kLetters[below(static_cast<int>(kLetters.size()))];
    }
    return out;
  }

 private:
  int below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }

  void add(const std::string& token, int type) {
    out_.tokens.push_back(token);
    out_.token_types.push_back(type);
  }
  // Of two tokens that are there; what they make may be there, too.
  void add_merge() {
    const auto any = [&] {
      const int first = 1, count = static_cast<int>(out_.tokens.size()) - first;
      const int letters = out_.model == "gpt2" && below(2) ? 'a' : -1;
      return std::string(out_.tokens[letters < 0 ? first + below(count) : first + letters + below(4)]);
    };
    const std::string left = any(), right = any();
    out_.merges.push_back(left + " " + right);
    if (std::ranges::find(out_.tokens, left + right) == out_.tokens.end()) add(left + right, 1);
    if (below(8) == 0) out_.merges.push_back(left + " " + right);
  }

  std::mt19937 random_;
  GgufVocabulary out_;
};

TEST(Bpe, EqualsTheModelOfTheCrateOverRandomVocabularies) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::size_t merged = 0;
  for (unsigned round = 0; round < 60; ++round) {
    RandomVocabulary random(seed + round);
    const Tokenizer direct = Tokenizer::from_gguf(random.vocabulary(), "direct");
    const Tokenizer whole = Tokenizer::from_json(whole_json(random.vocabulary()), "whole", Tokenizer::Construction::general);
    ASSERT_EQ(direct.vocabulary_size(), whole.vocabulary_size());
    for (int id = 0; id < direct.vocabulary_size(); ++id) ASSERT_EQ(direct.token_of(id), whole.token_of(id)) << id;
    for (int i = 0; i < 60; ++i) {
      const std::string text = random.text();
      const EncodeOptions options{.add_special_tokens = i % 2 == 0, .parse_special_tokens = i % 3 == 0};
      const std::vector<int> ids = direct.encode(text, options);
      ASSERT_EQ(ids, whole.encode(text, options)) << "seed " << seed + round << ", text '" << text << "'";
      merged += ids.size() < text.size() ? 1 : 0;
    }
  }
  EXPECT_GT(merged, 1000U);
}

TEST(Bpe, AWordOfManyPiecesIsMergedInTheOrderOfRanks) {
  GgufVocabulary vocabulary = piece_vocabulary("gpt-2", {});
  vocabulary.tokens = StringList();
  for (int byte = 0; byte < 256; ++byte) vocabulary.tokens.push_back(alphabet_of_byte(static_cast<unsigned char>(byte)));
  for (const char* const token : {"aa", "aaaa", "aaa"}) vocabulary.tokens.push_back(token);
  vocabulary.token_types.assign(vocabulary.tokens.size(), 1);
  vocabulary.merges = {"a a", "aa aa", "aa a"};
  const Tokenizer tokenizer = Tokenizer::from_gguf(vocabulary, "v");
  std::vector<int> expected(25'000, 257);
  expected.push_back(258);
  EXPECT_EQ(tokenizer.encode(std::string(100'003, 'a')), expected);
}

TEST(Bpe, MergesOfUnknownTokensAreCorruptAndNamed) {
  GgufVocabulary vocabulary = piece_vocabulary("gpt-2", {"ab"});
  for (const char* const merge : {"a q\xC3\xA9", "zz a", "b a"}) {
    vocabulary.merges = {"a b", merge};
    try {
      Tokenizer::from_gguf(vocabulary, "x.gguf");
      ADD_FAILURE() << merge;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt_file);
      EXPECT_NE(std::string(error.what()).find("x.gguf"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace godwit::text
