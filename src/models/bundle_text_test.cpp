#include "models/bundle_text.h"

#include <sys/stat.h>

#include "models/end_tokens.h"
#include "models/tiny_checkpoint.h"

namespace godwit::models {
namespace {

std::string rendered(const ModelBundle& model) {
  text::ChatInput chat;
  chat.messages = Json::array({{{"role", "user"}, {"content", "hi"}}});
  return model.need_chat_template().render(chat);
}

TEST(TextOfAModel, AMissingTokenizerOrTemplateIsAnErrorOnlyForThoseWhoNeedIt) {
  const auto model = TinyCheckpoint().open();
  EXPECT_TRUE(names(message_of(ErrorCode::unsupported, [&] { model->need_tokenizer(); }),
                    {"tiny", "tokenizer.json"}));
  EXPECT_TRUE(names(message_of(ErrorCode::unsupported, [&] { model->need_chat_template(); }),
                    {"tiny", "--chat-template"}));
}

TEST(TextOfAModel, ADamagedTokenizerOrTemplateIsAnErrorAtOnce) {
  TinyCheckpoint checkpoint;
  checkpoint.write("tokenizer.json", "{");
  EXPECT_TRUE(names(message_of(ErrorCode::corrupt_file, [&] { checkpoint.open(); }), {"tokenizer.json"}));
  std::filesystem::remove(checkpoint.folder / "tokenizer.json");
  checkpoint.write("chat_template.jinja", "{% if %}");
  EXPECT_TRUE(
      names(message_of(ErrorCode::corrupt_file, [&] { checkpoint.open(); }), {"chat_template.jinja"}));
  std::filesystem::remove(checkpoint.folder / "chat_template.jinja");
  checkpoint.write("tokenizer_config.json", R"({"chat_template": 7})");
  EXPECT_TRUE(
      names(message_of(ErrorCode::corrupt_file, [&] { checkpoint.open(); }), {"tokenizer_config.json"}));
}

TEST(TextOfAModel, WronglyTypedTextSettingsAreErrorsThatNameFileAndKey) {
  TinyCheckpoint checkpoint;
  const auto refusal = [&] { return message_of(ErrorCode::corrupt_file, [&] { checkpoint.open(); }); };
  for (const char* const value : {"5", "[]", "{\"content\": 7}", "{}", "true"}) {
    checkpoint.write("tokenizer_config.json", std::string(R"({"eos_token": )") + value + "}");
    EXPECT_TRUE(names(refusal(), {"tokenizer_config.json", "eos_token"})) << value;
  }
  checkpoint.write("tokenizer_config.json", "[]");
  EXPECT_TRUE(names(refusal(), {"tokenizer_config.json", "not an object"}));
  checkpoint.write("tokenizer_config.json", R"({"chat_template": [{"name": 5, "template": 5}]})");
  EXPECT_TRUE(names(refusal(), {"tokenizer_config.json", "chat_template"}));
}

TEST(TextOfAModel, APipeInPlaceOfAFileIsRefusedAndNotWaitedFor) {
  for (const char* const name : {"chat_template.jinja", "tokenizer.json", "tokenizer_config.json"}) {
    TinyCheckpoint checkpoint;
    ASSERT_EQ(::mkfifo((checkpoint.folder / name).c_str(), 0600), 0);
    EXPECT_TRUE(names(message_of(ErrorCode::io, [&] { checkpoint.open(); }), {name, "regular file"}));
  }
}

TEST(TextOfAModel, TheTemplateComesFromTheFirstPlaceThatHasOne) {
  TinyCheckpoint checkpoint;
  checkpoint.write("chat_template.json", R"({"chat_template": "from template json"})");
  EXPECT_EQ(rendered(*checkpoint.open()), "from template json");
  checkpoint.write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "no"},
                                                {"name": "default", "template": "from the list"}]})");
  EXPECT_EQ(rendered(*checkpoint.open()), "from the list");
  checkpoint.write("tokenizer_config.json", R"({"chat_template": "from tokenizer config"})");
  EXPECT_EQ(rendered(*checkpoint.open()), "from tokenizer config");
  checkpoint.write("chat_template.jinja", "from jinja");
  EXPECT_EQ(rendered(*checkpoint.open()), "from jinja");
  checkpoint.write("mine", "from the option");
  const auto mine = checkpoint.folder / "mine";
  EXPECT_EQ(rendered(*checkpoint.open([&](auto& o) { o.chat_template = mine; })), "from the option");
  EXPECT_TRUE(names(message_of(ErrorCode::not_found,
                               [&] { checkpoint.open([&](auto& o) { o.chat_template = mine / "absent"; }); }),
                    {"absent"}));
}

TEST(TextOfAModel, SpecialTokensAreVariablesOfTheTemplate) {
  TinyCheckpoint checkpoint;
  checkpoint.write("special_tokens_map.json", R"({"bos_token": "<old>", "pad_token": "<p>"})");
  checkpoint.write(
      "tokenizer_config.json",
      R"({"bos_token": {"content": "<b>", "lstrip": false}, "eos_token": "<e>", "unk_token": null})");
  checkpoint.write("chat_template.jinja", "{{ bos_token }}{{ eos_token }}{{ pad_token }}");
  EXPECT_EQ(rendered(*checkpoint.open()), "<b><e><p>");
}

TEST(EndTokens, AreTheUnionOfConfigGenerationConfigAndTokenizer) {
  TinyCheckpoint checkpoint;
  checkpoint.config["eos_token_id"] = 2;
  checkpoint.write("generation_config.json", R"({"eos_token_id": [2, 7]})");
  checkpoint.write("tokenizer.json", word_tokenizer({"<end>"}));
  EXPECT_EQ(checkpoint.open()->end_ids, (std::set<int>{2, 7}));
  checkpoint.write("tokenizer_config.json", R"({"eos_token": "w5"})");
  EXPECT_EQ(checkpoint.open()->end_ids, (std::set<int>{2, 5, 7}));
}

TEST(EndTokens, WhereNothingNamesOneTheTemplatesEndOfTurnCounts) {
  TinyCheckpoint checkpoint;
  checkpoint.config["eos_token_id"] = nullptr;
  checkpoint.write("tokenizer.json", word_tokenizer({"<|im_end|>", "<|eot_id|>"}));
  EXPECT_TRUE(checkpoint.open()->end_ids.empty());
  checkpoint.write("chat_template.jinja", "{{ messages[0].content }}<|im_end|>");
  EXPECT_EQ(checkpoint.open()->end_ids, (std::set<int>{10}));
}

TEST(EndTokens, AGgufFileAddsItsIdsAndEveryKnownEndOfTurn) {
  checkpoint::GgufTokenizer gguf;
  gguf.tokens = {"a", "</s>", "b", "<end_of_turn>", "</s> ", "<|im_end|>"};
  gguf.eos_id = 0;
  gguf.eom_id = 2;
  EXPECT_EQ(end_ids({.config = {9}, .gguf = gguf, .eos_token = "", .chat_template = ""}),
            (std::set<int>{0, 1, 2, 3, 5, 9}));
}

TEST(EndTokens, AnOrdinaryTokenThatOnlyLooksLikeOneEndsNothing) {
  checkpoint::GgufTokenizer gguf;
  gguf.tokens = {"</s>", "</s>", "<|im_end|>", "<eos>", "</s>"};
  gguf.token_types = {1, 3, 1, 1, 4};
  EXPECT_EQ(end_ids({.config = {}, .gguf = gguf, .eos_token = "", .chat_template = ""}),
            (std::set<int>{1, 2}));
}

}  // namespace
}  // namespace godwit::models
