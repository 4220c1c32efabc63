#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "text/test_vocabularies.h"

namespace godwit::text {
namespace {

std::string whole(Utf8Stream stream, std::string_view bytes) {
  std::string text = stream.add(bytes);
  return text + stream.finish();
}

std::string repeat(std::string_view text, int times) {
  std::string out;
  while (times-- > 0) out += text;
  return out;
}

constexpr std::string_view kBad = "\xEF\xBF\xBD";

TEST(Utf8Stream, InvalidBytesAreReplacedByMaximalSubpart) {
  EXPECT_EQ(whole(Utf8Stream(), "\xED\xA0\x80"), repeat(kBad, 3));
  EXPECT_EQ(whole(Utf8Stream(), "\xF0\x80\x80\x41"), repeat(kBad, 3) + "A");
  EXPECT_EQ(whole(Utf8Stream(), "\xE2\x80\x41"), repeat(kBad, 1) + "A");
  EXPECT_EQ(whole(Utf8Stream(), "\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), repeat(kBad, 4) + "A");
  EXPECT_EQ(whole(Utf8Stream(), "\xC0\x80"), repeat(kBad, 2));
  EXPECT_EQ(whole(Utf8Stream(), "\xF4\x90\x80\x80"), repeat(kBad, 4));
  EXPECT_EQ(whole(Utf8Stream(), "\xF0\x9F\x98"), repeat(kBad, 1));
  EXPECT_EQ(whole(Utf8Stream(Replacement::every_byte), "\xF0\x9F\x98"), repeat(kBad, 3));
}

TEST(Utf8Stream, EverySplitGivesTheSameText) {
  const std::string text = std::string("aé作😸") + "\xF0\x9F" + "z\xFF\xE4 x\xED\xA0\x80\xF0\x9F\x98";
  const std::string expected = whole(Utf8Stream(), text);
  for (std::size_t first = 0; first <= text.size(); ++first) {
    for (std::size_t second = first; second <= text.size(); ++second) {
      Utf8Stream stream;
      std::string got = stream.add(std::string_view(text).substr(0, first));
      got += stream.add(std::string_view(text).substr(first, second - first));
      got += stream.add(std::string_view(text).substr(second));
      EXPECT_EQ(got + stream.finish(), expected) << first << " " << second;
    }
  }
}

// Byte-level tokens, one for each byte, and a few longer ones.
Tokenizer byte_tokenizer(const std::vector<std::string>& pieces = {}) {
  return Tokenizer::from_gguf(piece_vocabulary("gpt-2", pieces), "bytes");
}

int token_of_bytes(const Tokenizer& tokenizer, std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += alphabet_of_byte(static_cast<unsigned char>(c));
  return tokenizer.id_of(text).value();
}

std::vector<std::string> deltas(const Tokenizer& tokenizer, const std::vector<std::string_view>& tokens) {
  Detokenizer detokenizer(tokenizer);
  std::vector<std::string> out;
  for (const auto bytes : tokens) out.push_back(detokenizer.add(token_of_bytes(tokenizer, bytes)));
  out.push_back(detokenizer.finish());
  return out;
}

using Deltas = std::vector<std::string>;

TEST(Detokenizer, ACharacterSplitOverTokensComesInOnePiece) {
  const Tokenizer tokenizer = byte_tokenizer({"\xE4\xBD", "\x9F\x98", " x"});
  EXPECT_EQ(deltas(tokenizer, {"\xE4\xBD", "\x9C"}), (Deltas{"", "作", ""}));
  EXPECT_EQ(deltas(tokenizer, {"\xF0", "\x9F\x98", "\xB8"}), (Deltas{"", "", "😸", ""}));
}

TEST(Detokenizer, BytesThatFormNoCharacterDoNotStallTheStream) {
  const Tokenizer tokenizer = byte_tokenizer({" x"});
  EXPECT_EQ(deltas(tokenizer, {"\xFF", "A"}), (Deltas{"\uFFFD", "A", ""}));
  EXPECT_EQ(deltas(tokenizer, {"\xE4", " x"}), (Deltas{"", "\uFFFD x", ""}));
  EXPECT_EQ(deltas(tokenizer, {"\xF0", "\x9F", "\x98"}), (Deltas{"", "", "", "\uFFFD"}));
}

TEST(Detokenizer, ByteLevelTextKeepsItsFirstSpace) {
  const Tokenizer tokenizer = byte_tokenizer({" hi", " you"});
  EXPECT_EQ(deltas(tokenizer, {" hi", " you"}), (Deltas{" hi", " you", ""}));
}

TEST(Detokenizer, SentencePieceTextLosesOneSpaceAtItsStartOnly) {
  const Tokenizer tokenizer = Tokenizer::from_json(sentencepiece_json(), "case");
  Detokenizer detokenizer(tokenizer);
  EXPECT_EQ(detokenizer.add(259), "");     // "▁": the artefact itself
  EXPECT_EQ(detokenizer.add(263), " hi");  // "▁hi" keeps its own
  EXPECT_EQ(detokenizer.add(267), " a");
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, AByteLevelSplitterDecidesOverTheDecoder) {
  const Json mixed = {
      {"pre_tokenizer", {{"type", "ByteLevel"}}},
      {"decoder", {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}}}};
  const DecodingRules rules = DecodingRules::from_description(mixed);
  EXPECT_TRUE(rules.byte_level);
  EXPECT_EQ(rules.bytes_of("Ġhi"), " hi");
  EXPECT_EQ(rules.strip_leading_spaces, 0);
}

TEST(Detokenizer, TextWithoutSpacesIsNotHeldBack) {
  const Tokenizer tokenizer = byte_tokenizer({"作"});
  Detokenizer detokenizer(tokenizer);
  const int id = token_of_bytes(tokenizer, "作");
  int shown = 0;
  for (int i = 0; i < 1000; ++i) shown += detokenizer.add(id) == "作";
  EXPECT_EQ(shown, 1000);
}

TEST(Detokenizer, AnIdOutsideTheVocabularyIsAnError) {
  const Tokenizer tokenizer = byte_tokenizer();
  Detokenizer detokenizer(tokenizer);
  EXPECT_THROW(detokenizer.add(tokenizer.vocabulary_size()), Error);
  EXPECT_THROW(detokenizer.add(-1), Error);
}

TEST(DecodingRules, TheByteAlphabetIsABijection) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string letter = alphabet_of_byte(static_cast<unsigned char>(byte));
    const CodePoint point = first_code_point(letter);
    EXPECT_EQ(point.size, letter.size());
    EXPECT_EQ(byte_of_alphabet(point.value), static_cast<unsigned char>(byte));
  }
  EXPECT_EQ(alphabet_of_byte(' '), "Ġ");
  EXPECT_EQ(alphabet_of_byte('\n'), "Ċ");
  EXPECT_EQ(byte_of_alphabet(U'作'), std::nullopt);
}

}  // namespace
}  // namespace godwit::text
