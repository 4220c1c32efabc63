#include "models/registry.h"

#include <array>

#include "models/profile_test_support.h"

namespace godwit::models {
namespace {

using checkpoint::Dialect;
using checkpoint::GgufDialect;

constexpr std::array<GgufDialect, 1> kHyenaGguf = {{{.architecture = "hyena"}}};
constexpr Dialect kHyena = {.model_type = "hyena", .gguf = kHyenaGguf};
constexpr Dialect kQwen3Twice = {.model_type = "qwen3"};
constexpr Dialect kPlain = {.model_type = "plain"};

Family family(std::string_view id, const Dialect* dialect) {
  return {.id = id, .dialect = dialect, .rules = nullptr, .needs = nullptr, .make = nullptr};
}

const Registry kOne({family("hyena", &kHyena)});

std::string refusal(const Registry& registry, const Profile& profile) {
  return message_of(ErrorCode::unsupported, [&] { registry.select(profile); });
}

TEST(Registry, ReadsEveryBuiltInTypeAndItsAliases) {
  const Registry registry = Registry::builtin();
  for (const char* type : {"llama", "qwen2", "qwen3", "gemma3_text", "mistral", "xverse"})
    EXPECT_NO_THROW(registry.check_type(type, "origin")) << type;
  EXPECT_EQ(registry.dialects().of_type("mistral")->model_type, "llama");
}

TEST(Registry, AnUnknownTypeIsAnErrorThatListsWhatThereIs) {
  const auto check = [](const char* type) {
    return message_of(ErrorCode::unsupported,
                      [&] { Registry::builtin().check_type(type, "/h/config.json"); });
  };
  EXPECT_TRUE(names(check("hyena"), {"/h/config.json", "'hyena'", "llama, ", "mistral, ", "qwen2, "}));
  EXPECT_TRUE(names(check("kimi_k2"), {"'kimi_k2' (read as 'deepseek_v3')"}));
}

TEST(Registry, ASpeechModelNamesTheCommandThatOpensIt) {
  const std::string message =
      message_of(ErrorCode::unsupported, [] { Registry::builtin().check_type("whisper", "/w/config.json"); });
  EXPECT_TRUE(names(message, {"/w/config.json", "whisper", "godwit transcribe"}));
}

TEST(Registry, ExtendingLeavesTheOldOneAlone) {
  const Registry after = kOne.with(family("plain", &kPlain));
  EXPECT_EQ(after.families().size(), 2u);
  EXPECT_EQ(kOne.families().size(), 1u);
  EXPECT_EQ(after.select(profile_of("p", "plain")).id, "plain");
  EXPECT_TRUE(names(refusal(kOne, profile_of("p", "plain")), {"'p'", "'plain'", "hyena"}));
}

TEST(Registry, AnEntryThatChangesLaterChangesNothing) {
  Family mine = family("hyena", &kHyena);
  const Registry registry({mine});
  mine.id = "renamed";
  mine.loop = Loop::encoder;
  EXPECT_EQ(registry.select(profile_of("p", "hyena")).id, "hyena");
}

TEST(Registry, RefusesBlankAndDuplicateNames) {
  const auto refused = [](const Family& added) {
    return message_of(ErrorCode::internal, [&] { Registry::builtin().with(added); });
  };
  EXPECT_TRUE(names(refused(family("", &kHyena)), {"blank"}));
  EXPECT_TRUE(names(refused(family("qwen3", &kHyena)), {"qwen3"}));
  EXPECT_TRUE(names(refused(family("other", &kQwen3Twice)), {"qwen3"}));
}

TEST(Registry, FurtherCodeOfAGraphMustFitIt) {
  Family lost = family("fast", &kHyena), other_loop = lost, fits = lost;
  lost.graph = "nowhere";
  EXPECT_TRUE(names(message_of(ErrorCode::internal, [&] { kOne.with(lost); }), {"fast", "nowhere"}));
  other_loop.graph = "hyena";
  other_loop.loop = Loop::diffusion;
  EXPECT_TRUE(names(message_of(ErrorCode::internal, [&] { kOne.with(other_loop); }),
                    {"fast", "diffusion", "hyena", "autoregressive"}));
  fits.graph = "hyena";
  EXPECT_NO_THROW(kOne.with(fits));
}

TEST(Select, TakesTheNamedImplementationElseTheOneOfTheGraph) {
  Family fast = family("hyena-fast", &kHyena), generated = family("hyena-generated", &kHyena);
  fast.graph = generated.graph = "hyena";
  const Registry registry = kOne.with(fast).with(generated);
  Profile profile = profile_of("p", "hyena");
  EXPECT_EQ(registry.select(profile).id, "hyena");
  profile.execution.specialization = Specialization::generated;
  EXPECT_EQ(registry.select(profile).id, "hyena-generated");
  profile.execution.implementation = "hyena-fast";
  EXPECT_EQ(registry.select(profile).id, "hyena-fast");
}

TEST(Select, NeverTakesAnotherOne) {
  Profile profile = profile_of("p", "hyena");
  profile.execution.implementation = "hyena-fast";
  EXPECT_TRUE(names(refusal(kOne, profile), {"'p'", "'hyena-fast'", "hyena"}));
  profile.execution.implementation.clear();
  profile.execution.specialization = Specialization::generated;
  EXPECT_TRUE(names(refusal(kOne, profile), {"'p'", "'hyena-generated'"}));
}

TEST(Select, RefusesAGraphALoaderOrALoopThatTheCodeDoesNotHave) {
  const Registry registry = kOne.with(family("plain", &kPlain));
  Profile graph = profile_of("p", "hyena");
  graph.execution.implementation = "plain";
  EXPECT_TRUE(names(refusal(registry, graph), {"'p'", "graph", "hyena", "plain"}));
  Profile loader = profile_of("p", "plain");
  loader.execution.loader = Loader::gguf;
  EXPECT_TRUE(names(refusal(registry, loader), {"'p'", "loader", "gguf", "'plain'", "safetensors"}));
  loader.execution.graph = "hyena";
  EXPECT_EQ(registry.select(loader).id, "hyena");
  loader.execution.loader = Loader::streamed;
  EXPECT_TRUE(names(refusal(registry, loader), {"loader", "streamed", "safetensors and gguf"}));
  Profile loop = profile_of("p", "hyena");
  loop.execution.loop = Loop::encoder;
  EXPECT_TRUE(names(refusal(registry, loop), {"'p'", "loop", "encoder", "autoregressive"}));
}

}  // namespace
}  // namespace godwit::models
