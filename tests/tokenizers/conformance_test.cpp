// Ids and texts of small tokenizers, from tokenizer.json and rebuilt from GGUF metadata, against the
// libraries that made them: Hugging Face `tokenizers` for byte-level and Unigram files, Google's
// `sentencepiece` for its own models.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <functional>

#include "base/json.h"
#include "text/detokenizer.h"
#include "text/test_vocabularies.h"
#include "text/tokenizer.h"

namespace godwit::text {
namespace {

Json read(const std::string& name) {
  std::ifstream file(std::string(GODWIT_FIXTURES) + "/" + name + ".json");
  return Json::parse(file);
}

template <typename T>
void take(const Json& from, const char* key, T& into) {
  if (from.contains(key) && !from[key].is_null()) into = from[key].get<T>();
}

template <typename T>
void take(const Json& from, const char* key, std::optional<T>& into) {
  if (from.contains(key) && !from[key].is_null()) into = from[key].get<T>();
}

void take(const Json& from, const char* key, StringList& into) {
  if (from.contains(key) && !from[key].is_null()) into = StringList(from[key].get<std::vector<std::string>>());
}

GgufVocabulary vocabulary_of(const Json& gguf) {
  GgufVocabulary out;
  take(gguf, "model", out.model);
  take(gguf, "pre", out.pre);
  take(gguf, "tokens", out.tokens);
  take(gguf, "scores", out.scores);
  take(gguf, "token_types", out.token_types);
  take(gguf, "merges", out.merges);
  take(gguf, "precompiled_charsmap", out.precompiled_charsmap);
  take(gguf, "bos_id", out.bos_id);
  take(gguf, "eos_id", out.eos_id);
  take(gguf, "unknown_id", out.unknown_id);
  take(gguf, "cls_id", out.cls_id);
  take(gguf, "separator_id", out.separator_id);
  take(gguf, "lowercase", out.lowercase);
  take(gguf, "add_space_prefix", out.add_space_prefix);
  take(gguf, "remove_extra_whitespaces", out.remove_extra_whitespaces);
  return out;
}

// Runs `check` on every tokenizer that a suite can build: the file's own and the GGUF twin.
void for_each_build(
    const std::function<void(const Tokenizer&, const Json& suite, const std::string& label)>& check) {
  for (const Json& name : read("index")) {
    const Json suite = read(name.get<std::string>());
    if (!suite["json"].is_null())
      check(Tokenizer::from_json(suite["json"].get<std::string>(), "file"), suite,
            name.get<std::string>() + " (json)");
    if (!suite["gguf"].is_null())
      check(Tokenizer::from_gguf(vocabulary_of(suite["gguf"]), "gguf"), suite,
            name.get<std::string>() + " (gguf)");
  }
}

TEST(TokenizerConformance, EveryTextEncodesToTheIdsOfTheOracle) {
  int total = 0;
  for_each_build([&](const Tokenizer& tokenizer, const Json& suite, const std::string& label) {
    int wrong = 0;
    for (const Json& item : suite["cases"]) {
      const EncodeOptions options{.add_special_tokens = item["add_special"],
                                  .parse_special_tokens = item["parse_special"]};
      const auto got = tokenizer.encode(item["text"].get<std::string>(), options);
      ++total;
      if (got != item["ids"].get<std::vector<int>>() && ++wrong <= 5)
        ADD_FAILURE() << label << ": " << item.dump() << "\n got " << Json(got).dump();
    }
    EXPECT_EQ(wrong, 0) << label;
  });
  std::printf("%d encodings\n", total);
  EXPECT_GT(total, 10000);
}

void expect_equal(const Tokenizer& direct, const Tokenizer& general, const Json& cases, const std::string& label) {
  ASSERT_EQ(direct.vocabulary_size(), general.vocabulary_size()) << label;
  for (int id = 0; id < direct.vocabulary_size(); ++id) {
    const std::optional<std::string> token = direct.token_of(id);
    ASSERT_EQ(token, general.token_of(id)) << label << " " << id;
    if (!token) continue;
    ASSERT_EQ(direct.bytes_of(id), general.bytes_of(id)) << label << " " << id;
    ASSERT_EQ(direct.is_special(id), general.is_special(id)) << label << " " << id;
    ASSERT_EQ(direct.id_of(*token), general.id_of(*token)) << label << " " << id;
  }
  for (const Json& item : cases)
    for (const bool special : {false, true}) {
      const EncodeOptions options{.add_special_tokens = special, .parse_special_tokens = item["parse_special"]};
      const auto text = item["text"].get<std::string>();
      ASSERT_EQ(direct.encode(text, options), general.encode(text, options)) << label << " " << item.dump();
    }
}

// Our own BPE model against the crate's, made of the file's own tokenizer.json and of the one that the GGUF twin stands for.
TEST(TokenizerConformance, TheDirectConstructionEqualsTheGeneralOne) {
  int compared = 0;
  const auto compare = [&](const Tokenizer& direct, const std::string& json, const Json& cases, const std::string& label) {
    expect_equal(direct, Tokenizer::from_json(json, "general", Tokenizer::Construction::general), cases, label);
    ++compared;
  };
  for (const Json& name : read("index")) {
    const Json suite = read(name.get<std::string>());
    if (!suite["json"].is_null()) {
      const auto json = suite["json"].get<std::string>();
      compare(Tokenizer::from_json(json, "direct"), json, suite["cases"], name.get<std::string>() + " (json)");
    }
    if (!suite["gguf"].is_null()) {
      const GgufVocabulary vocabulary = vocabulary_of(suite["gguf"]);
      compare(Tokenizer::from_gguf(vocabulary, "direct"), whole_json(vocabulary), suite["cases"], name.get<std::string>() + " (gguf)");
    }
  }
  EXPECT_GT(compared, 10);
}

TEST(TokenizerConformance, EverySequenceDecodesToTheTextOfTheOracle) {
  int total = 0;
  for_each_build([&](const Tokenizer& tokenizer, const Json& suite, const std::string& label) {
    int wrong = 0;
    for (const Json& item : suite["decodings"]) {
      const auto got = tokenizer.decode(item["ids"].get<std::vector<int>>(), item["skip_special"]);
      ++total;
      if (got != item["text"].get<std::string>() && ++wrong <= 5)
        ADD_FAILURE() << label << ": " << item.dump() << "\n got " << Json(got).dump();
    }
    EXPECT_EQ(wrong, 0) << label;
  });
  std::printf("%d decodings\n", total);
  EXPECT_GT(total, 1500);
}

TEST(TokenizerConformance, StreamedPiecesAreFinalAndAddUpToTheWholeText) {
  for_each_build([&](const Tokenizer& tokenizer, const Json& suite, const std::string& label) {
    for (const Json& item : suite["decodings"]) {
      if (!item["skip_special"]) continue;
      const auto ids = item["ids"].get<std::vector<int>>();
      Detokenizer detokenizer(tokenizer);
      std::string shown;
      for (const int id : ids) shown += detokenizer.add(id);
      EXPECT_EQ(shown + detokenizer.finish(), tokenizer.decode(ids)) << label;
    }
  });
}

TEST(TokenizerConformance, PlainTextComesBackAsItWas) {
  for_each_build([&](const Tokenizer& tokenizer, const Json& suite, const std::string& label) {
    // These change the text on purpose (NFC, NFKC, squeezed spaces, small letters).
    const std::string name = suite["name"];
    if (name.starts_with("qwen") || name.starts_with("bert") || name == "t5" || name == "unigram") return;
    for (const Json& item : suite["cases"]) {
      if (item["parse_special"] || item["add_special"]) continue;
      const auto text = item["text"].get<std::string>();
      if (text.find("\xE2\x96\x81") != std::string::npos) continue;  // U+2581 is a space to SentencePiece
      EXPECT_EQ(tokenizer.decode(
                    tokenizer.encode(text, {.add_special_tokens = false, .parse_special_tokens = false}),
                    /*skip_special_tokens=*/false),
                text)
          << label;
    }
  });
}

}  // namespace
}  // namespace godwit::text
