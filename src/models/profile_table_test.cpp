#include "models/profile_table.h"

#include "models/profile_test_support.h"

namespace godwit::models {
namespace {

ResolvedProfile resolve(const ProfileTable& table, const checkpoint::Config& config,
                        const std::optional<std::string>& artifact = {}) {
  return table.resolve(config, all_capabilities(table), artifact);
}

constexpr const char* kArtifact = "hf:org/name@0123456789012345678901234567890123456789";

TEST(ProfileTable, AConfigGetsTheProfileOfItsFamily) {
  const ProfileTable table({profile_of("a"), profile_of("b", "qwen3")});
  const checkpoint::Config config = config_of({{"model_type", "qwen3"}});
  const ResolvedProfile resolved = resolve(table, config);
  EXPECT_EQ(resolved.profile->id, "b");
  EXPECT_EQ(resolved.config, checkpoint::config_fingerprint(config));
}

TEST(ProfileTable, AnIdThatIsThereTwiceIsAnInvalidContract) {
  const std::string message = message_of(ErrorCode::invalid_argument, [] {
    ProfileTable({profile_of("a"), profile_of("a", "x")});
  });
  EXPECT_TRUE(names(message, {"invalid contract", "'a'", "id"}));
}

TEST(ProfileTable, WithLeavesTheParentAsItIsAndAProfileCannotChangeLater) {
  const ProfileTable parent({profile_of("a")});
  Profile added = profile_of("b", "mine");
  const ProfileTable child = parent.with(added);
  added.execution.graph = "other";
  EXPECT_EQ(parent.profiles().size(), 1u);
  EXPECT_EQ(child.profiles().size(), 2u);
  EXPECT_EQ(child.profiles()[1]->execution.graph, "mine");
  EXPECT_EQ(child.model_types(), (std::vector<std::string>{"llama", "mine"}));
  message_of(ErrorCode::unsupported, [&] { resolve(parent, config_of({{"model_type", "mine"}})); });
}

TEST(ProfileTable, PredicatesAndLoadersKeepProfilesOfOneTypeApart) {
  Profile small = profile_of("small"), large = profile_of("large"), gguf = profile_of("gguf");
  small.accepts = [](const checkpoint::Config& config) { return config.hidden < 64; };
  large.accepts = [](const checkpoint::Config& config) { return config.hidden >= 64; };
  gguf.execution.loader = Loader::gguf;
  gguf.capabilities = capabilities_of(gguf.execution);
  const ProfileTable table({small, large, gguf});
  EXPECT_EQ(resolve(table, config_of()).profile->id, "small");
  EXPECT_EQ(resolve(table, config_of({{"hidden_size", 128}})).profile->id, "large");
  checkpoint::Config from_file = config_of();
  from_file.from_gguf = true;
  EXPECT_EQ(resolve(table, from_file).profile->id, "gguf");
}

TEST(ProfileTable, TwoFamiliesThatTakeOneConfigAreAnErrorThatNamesBoth) {
  const ProfileTable table({profile_of("first"), profile_of("second")});
  const std::string message = message_of(ErrorCode::internal, [&] { resolve(table, config_of()); });
  EXPECT_TRUE(names(message, {"dir/config.json", "first", "second"}));
}

TEST(ProfileTable, ATypeOfNobodyNamesItselfWhatItIsReadAsAndAllTypes) {
  const ProfileTable table({profile_of("a"), profile_of("b", "qwen3")});
  checkpoint::Config config = config_of({{"model_type", "mamba"}});
  EXPECT_TRUE(names(message_of(ErrorCode::unsupported, [&] { resolve(table, config); }),
                    {"dir/config.json", "'mamba'", "llama, qwen3"}));
  config.source_model_type = "falcon_mamba";
  EXPECT_TRUE(names(message_of(ErrorCode::unsupported, [&] { resolve(table, config); }),
                    {"'falcon_mamba'", "read as 'mamba'"}));
}

TEST(ProfileTable, AKnownTypeOfAShapeThatNobodyTakesSaysSo) {
  Profile picky = profile_of("a");
  picky.accepts = [](const checkpoint::Config&) { return false; };
  const std::string message =
      message_of(ErrorCode::unsupported, [&] { resolve(ProfileTable({picky}), config_of()); });
  EXPECT_TRUE(names(message, {"dir/config.json", "'llama'", "safetensors"}));
}

TEST(ProfileTable, AllCapabilitiesThatTheEngineLacksAreNamed) {
  Profile profile = profile_of("a");
  profile.capabilities.insert({"recurrent-state", "native-mtp"});
  const ProfileTable table({profile});
  const std::string message = message_of(ErrorCode::unsupported, [&] {
    table.resolve(config_of(), {"safetensors", "autoregressive", "llama-graph"});
  });
  EXPECT_TRUE(names(message, {"'a'", "native-mtp, recurrent-state"}));
  EXPECT_EQ(message.find("llama-graph"), std::string::npos) << message;
}

TEST(ExactCheckpoint, ItsProfileGoesBeforeThatOfItsFamily) {
  const checkpoint::Config config = config_of();
  const ProfileTable table({profile_of("family"), exact_profile("exact", kArtifact, config)});
  EXPECT_EQ(resolve(table, config, kArtifact).profile->id, "exact");
  EXPECT_EQ(resolve(table, config, "hf:org/other@1").profile->id, "family");
  EXPECT_EQ(resolve(table, config).profile->id, "family");
}

TEST(ExactCheckpoint, AnotherConfigIsRefusedWithBothFingerprintsAndNoFamilyIsTaken) {
  const checkpoint::Config made_for = config_of(), found = config_of({{"rope_theta", 5000.0}});
  const ProfileTable table({profile_of("family"), exact_profile("exact", kArtifact, made_for)});
  const std::string message = message_of(ErrorCode::unsupported, [&] { resolve(table, found, kArtifact); });
  EXPECT_TRUE(names(message, {"'exact'", kArtifact, checkpoint::config_fingerprint(made_for).digits,
                              checkpoint::config_fingerprint(found).digits}));
}

TEST(ExactCheckpoint, ATypeOrALoaderThatItDoesNotTakeIsRefused) {
  const checkpoint::Config config = config_of();
  Profile other_type = exact_profile("exact", kArtifact, config);
  other_type.model_types = {"qwen3"};
  EXPECT_TRUE(names(message_of(ErrorCode::unsupported,
                               [&] {
                                 resolve(ProfileTable({profile_of("family"), other_type}), config, kArtifact);
                               }),
                    {"'exact'", "graph llama", "'llama'"}));
  Profile other_loader = exact_profile("exact", kArtifact, config);
  other_loader.execution.loader = Loader::gguf;
  other_loader.capabilities = capabilities_of(other_loader.execution);
  EXPECT_TRUE(
      names(message_of(ErrorCode::unsupported,
                       [&] {
                         resolve(ProfileTable({profile_of("family"), other_loader}), config, kArtifact);
                       }),
            {"'exact'", "gguf", "safetensors"}));
}

TEST(ExactCheckpoint, SeveralProfilesForItAreAllNamed) {
  const checkpoint::Config config = config_of();
  const ProfileTable table(
      {exact_profile("one", kArtifact, config), exact_profile("two", kArtifact, config)});
  EXPECT_TRUE(names(message_of(ErrorCode::invalid_argument, [&] { resolve(table, config, kArtifact); }),
                    {kArtifact, "one, two"}));
}

TEST(ArtifactOf, ASnapshotFolderOfTheHubNamesItsCheckpoint) {
  const std::string commit(40, 'a');
  const std::string folder = "/cache/hub/models--org--some-name/snapshots/" + commit;
  EXPECT_EQ(artifact_of(folder), "hf:org/some-name@" + commit);
  EXPECT_EQ(artifact_of(folder + "/"), "hf:org/some-name@" + commit);
  EXPECT_EQ(artifact_of(folder + "/x-Q4.gguf"), "hf:org/some-name@" + commit + ":x-Q4.gguf");
  EXPECT_EQ(artifact_of("/cache/models--gpt2/snapshots/" + commit), "hf:gpt2@" + commit);
  const std::vector<std::string> others = {
      "/models/llama", "/cache/models--a--b/blobs/" + commit, "/cache/models--a--b/snapshots/main",
      "/cache/models--a--b/snapshots/" + std::string(65, 'a'), "/x/a--b/snapshots/" + commit};
  for (const std::string& other : others) EXPECT_FALSE(artifact_of(other)) << other;
}

}  // namespace
}  // namespace godwit::models
