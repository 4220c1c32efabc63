#include "text/builtin_templates.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "text/chat_template.h"

namespace godwit::text {
namespace {

std::string gemma(const Json& messages, bool add_generation_prompt = true) {
  const ChatTemplate chat_template(std::string(builtin_chat_template("gemma3").value()),
                                   {{"bos_token", "<bos>"}}, "gemma3");
  ChatInput input;
  input.messages = messages;
  input.add_generation_prompt = add_generation_prompt;
  return chat_template.render(input);
}

Json message(const char* role, Json content) { return {{"role", role}, {"content", std::move(content)}}; }

TEST(BuiltinTemplates, GemmaWritesItsPublishedTurnFormat) {
  EXPECT_EQ(gemma(Json::array({message("user", " Hello ")})),
            "<bos><start_of_turn>user\nHello<end_of_turn>\n<start_of_turn>model\n");
  EXPECT_EQ(gemma(Json::array({message("system", "Be brief."), message("user", "Hi"),
                               message("assistant", "Yo"), message("user", "Bye")})),
            "<bos><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\nYo<end_of_turn>\n"
            "<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n");
  EXPECT_EQ(gemma(Json::array({message("user", "Hi"), message("assistant", "Yo")}), false),
            "<bos><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\nYo<end_of_turn>\n");
}

TEST(BuiltinTemplates, GemmaTakesContentInParts) {
  const Json parts = {{{"type", "image"}}, {{"type", "text"}, {"text", "What is this?"}}};
  EXPECT_EQ(gemma(Json::array({message("user", parts)})),
            "<bos><start_of_turn>user\n<start_of_image>What is this?<end_of_turn>\n<start_of_turn>model\n");
}

TEST(BuiltinTemplates, GemmaRefusesTurnsThatDoNotAlternate) {
  EXPECT_THROW(gemma(Json::array({message("user", "a"), message("user", "b")})), Error);
  EXPECT_THROW(gemma(Json::array({message("assistant", "a")})), Error);
}

TEST(BuiltinTemplates, AFamilyWithoutOneGetsNone) {
  EXPECT_EQ(builtin_chat_template("llama"), std::nullopt);
  EXPECT_EQ(builtin_chat_template(""), std::nullopt);
  EXPECT_EQ(builtin_chat_template("gemma3_text"), builtin_chat_template("gemma3"));
}

}  // namespace
}  // namespace godwit::text
