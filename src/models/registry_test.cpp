#include "models/registry.h"

#include <array>

#include "checkpoint/config_defaults.h"
#include "models/tiny_checkpoint.h"

namespace godwit::models {
namespace {

Family family(std::string_view model_type, std::span<const std::string_view> aliases = {}) {
  return {model_type, aliases, nullptr, nullptr, nullptr};
}

TEST(Registry, FindsEveryBuiltInFamilyByItsTypeAndItsAliases) {
  const Registry registry = Registry::builtin();
  for (const char* type : {"llama", "qwen2", "qwen3", "gemma3_text"})
    EXPECT_EQ(registry.find(type, "config.json").model_type, type);
  for (const char* alias : {"mistral", "xverse", "iquestcoder"}) {
    EXPECT_EQ(registry.find(alias, "config.json").model_type, "llama");
    EXPECT_EQ(checkpoint::remapped_model_type(alias), "llama");
  }
}

TEST(Registry, AnUnknownTypeIsAnErrorThatListsWhatThereIs) {
  const std::string message =
      message_of(ErrorCode::unsupported, [] { Registry::builtin().find("hyena", "/models/h/config.json"); });
  EXPECT_TRUE(names(message,
                    {"/models/h/config.json", "'hyena'", "gemma3_text, iquestcoder, llama, mistral, qwen2"}));
}

TEST(Registry, ExtendingLeavesTheOldOneAlone) {
  const Family extra = family("hyena");
  const Registry before = Registry::builtin();
  const Registry after = before.with(extra);
  EXPECT_EQ(&after.find("hyena", "x"), &extra);
  EXPECT_EQ(after.model_types().size(), before.model_types().size() + 1);
  message_of(ErrorCode::unsupported, [&] { before.find("hyena", "x"); });
}

TEST(Registry, RefusesBlankAndDuplicateNames) {
  static constexpr std::array<std::string_view, 1> kAlias = {"llama"};
  const Family blank = family(""), twice = family("qwen3"), alias = family("hyena", kAlias);
  EXPECT_TRUE(names(message_of(ErrorCode::internal, [&] { Registry::builtin().with(blank); }), {"blank"}));
  EXPECT_TRUE(names(message_of(ErrorCode::internal, [&] { Registry::builtin().with(twice); }), {"qwen3"}));
  EXPECT_TRUE(names(message_of(ErrorCode::internal, [&] { Registry::builtin().with(alias); }), {"llama"}));
}

}  // namespace
}  // namespace godwit::models
