// The real SmolLM2 file, opened by us, against mlx-lm on a conversion that never saw our code
// (convert_smollm2.py).
#include <gtest/gtest.h>

#include "base/json.h"
#include "oracle/golden_case.h"
#include "oracle/golden_run.h"

namespace godwit::oracle {
namespace {

const std::filesystem::path kFolder = GODWIT_SMOLLM2_FOLDER;

Json golden() { return read_json_file(kFolder / "case.json"); }

std::filesystem::path gguf_file() { return golden().at("gguf").get<std::string>(); }

TEST(SmolLm2, ChatPromptAndItsTokensEqualThoseOfTransformersAndTokenizers) {
  const Json wanted = golden();
  const auto model = open_reference(gguf_file());
  text::ChatInput chat;
  chat.messages = wanted.at("chat");
  const std::string prompt = model->need_chat_template().render(chat);
  EXPECT_EQ(prompt, wanted.at("prompt_text").get<std::string>());
  EXPECT_EQ(model->need_tokenizer().encode(prompt, {.add_special_tokens = false}),
            wanted.at("prompt").get<std::vector<int>>());
}

// Both the file itself and its conversion: the two readers must lead to the same arithmetic.
TEST(SmolLm2, LogitsOfTheWholePromptEqualThoseOfMlxLmBitForBit) {
  const auto prompt = golden().at("prompt").get<std::vector<int>>();
  const mx::array expected = read_expected(kFolder / "expected.safetensors", "whole");
  for (const auto& path : {gguf_file(), kFolder / "model"}) {
    SCOPED_TRACE(path.string());
    const auto model = open_reference(path);
    cache::Row row = model->store->create();
    EXPECT_TRUE(same_bits(forward(*model, row, prompt), expected));
  }
}

TEST(SmolLm2, FortyEightGreedyTokensAndTheirTextEqualThoseOfMlxLm) {
  const Json wanted = golden();
  const Answer answer = greedy(gguf_file(), wanted.at("prompt").get<std::vector<int>>(), 48);
  EXPECT_EQ(answer.tokens, wanted.at("greedy_tokens").get<std::vector<int>>());
  EXPECT_EQ(answer.text, wanted.at("text").get<std::string>());
}

}  // namespace
}  // namespace godwit::oracle
