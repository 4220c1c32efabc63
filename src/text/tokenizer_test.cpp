#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace godwit::text {
namespace {

TEST(Tokenizer, AnUnknownPreTokenizerIsRefusedByName) {
  GgufVocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = "no-such-rule";
  vocabulary.tokens = {"a"};
  vocabulary.merges = {"a a"};
  try {
    Tokenizer::from_gguf(vocabulary, "x.gguf");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(e.what()).find("no-such-rule"), std::string::npos);
  }
}

}  // namespace
}  // namespace godwit::text
