#include "models/opening.h"

#include <mlx/memory.h>

#include "models/file_watch.h"
#include "models/profile_test_support.h"

namespace godwit::models {
namespace {

using Change = std::function<void(ModelOptions&)>;
constexpr const char* kTensors = "model.safetensors";

std::shared_ptr<Catalogue> builtin() { return std::make_shared<Catalogue>(Catalogue::builtin()); }

// The config of the tiny checkpoint as it is opened.
checkpoint::Config config_in(const TinyCheckpoint& files) {
  files.open();
  return checkpoint::read_config(files.folder, Registry::builtin().dialects());
}

TEST(Opening, TheBundleKeepsItsProfileAndWhatItPromises) {
  const TinyCheckpoint files;
  const auto bundle = files.open();
  EXPECT_EQ(bundle->profile.profile->id, "llama");
  EXPECT_EQ(bundle->profile.config, checkpoint::config_fingerprint(bundle->config));
  ASSERT_TRUE(bundle->fidelity().has_value());
  EXPECT_EQ(text_of(*bundle->fidelity()), "L1, mlx-lm, bit-exact");
}

TEST(Opening, AFailureBeforeWeightsOpensNoTensorFile) {
  const TinyCheckpoint files;
  files.open();
  const FileWatch watch(files.folder);
  const auto lacking = builtin(), codeless = builtin(), exact = builtin(), twice = builtin();
  lacking->capabilities.erase("llama-graph");
  codeless->registry = Registry({*std::ranges::find(builtin()->registry.families(), "llama", &Family::id)});
  Profile asks = profile_of("asks", "llama");
  asks.execution.implementation = "llama-fast";
  codeless->profiles = ProfileTable({asks});
  exact->profiles = exact->profiles.with(exact_profile("exact", "hf:a/b@c", config_of()));
  twice->profiles = twice->profiles.with(profile_of("second llama"));

  struct Case {
    const char* what;
    Change change;
    ErrorCode code;
    std::vector<std::string_view> words;
  };
  const std::vector<Case> cases = {
      {"a capability",
       [&](ModelOptions& o) { o.catalogue = lacking; },
       ErrorCode::unsupported,
       {"llama-graph"}},
      {"an implementation",
       [&](ModelOptions& o) { o.catalogue = codeless; },
       ErrorCode::unsupported,
       {"llama-fast"}},
      {"two profiles",
       [&](ModelOptions& o) { o.catalogue = twice; },
       ErrorCode::internal,
       {"llama", "second llama"}},
      {"another artifact",
       [&](ModelOptions& o) {
         o.catalogue = exact;
         o.artifact = "hf:a/b@c";
       },
       ErrorCode::unsupported,
       {"'exact'", "fingerprint"}},
      {"a KV policy",
       [](ModelOptions& o) { o.kv = cache::parse_kv_policy("turbo:4:4"); },
       ErrorCode::unsupported,
       {"layer 0"}},
  };
  static_cast<void>(watch.opened());
  for (const Case& c : cases) {
    ModelOptions options;
    options.path = files.folder;
    c.change(options);
    const std::string message = message_of(c.code, [&] { ModelBundle::open(options, Log()); });
    for (const std::string_view word : c.words) EXPECT_TRUE(names(message, {word})) << c.what;
    const auto opened = watch.opened();
    EXPECT_TRUE(opened.contains("config.json")) << c.what;
    EXPECT_FALSE(opened.contains(kTensors)) << c.what;
  }
  // The watch sees a tensor file when it is opened.
  ModelOptions options;
  options.path = files.folder;
  ModelBundle::open(options, Log());
  EXPECT_TRUE(watch.opened().contains(kTensors));
}

TEST(Opening, PreparingOpensNoTensorFileAndNeedsNone) {
  TinyCheckpoint files;
  files.open();
  const FileWatch watch(files.folder);
  const Opening opening = prepare(files.folder, Catalogue::builtin());
  EXPECT_EQ(opening.family.id, "llama");
  EXPECT_EQ(opening.needs.size(), 2u);
  EXPECT_FALSE(watch.opened().contains(kTensors));
  std::filesystem::remove(files.folder / kTensors);
  EXPECT_NO_THROW(prepare(files.folder, Catalogue::builtin()));
}

TEST(Opening, ACallerBringsItsOwnProfilesCapabilitiesAndNamesOfArtifacts) {
  const TinyCheckpoint files;
  const auto mine = builtin();
  mine->profiles = mine->profiles.with(exact_profile("mine", "hf:me/tiny@1", config_in(files)));
  const auto open = [&](const std::string& artifact) {
    return files.open([&](ModelOptions& o) {
      o.catalogue = mine;
      o.artifact = artifact;
    });
  };
  EXPECT_EQ(open("hf:me/tiny@1")->profile.profile->id, "mine");
  EXPECT_EQ(open("hf:me/tiny@2")->profile.profile->id, "llama");
}

TEST(Opening, ASnapshotOfTheHubIsAnExactCheckpoint) {
  const TinyCheckpoint files;
  files.open();
  const std::string commit(40, 'b');
  const auto snapshot = files.folder / "models--me--tiny" / "snapshots" / commit;
  std::filesystem::create_directories(snapshot);
  std::filesystem::copy(files.folder / "config.json", snapshot);
  Catalogue mine = Catalogue::builtin();
  mine.profiles = mine.profiles.with(exact_profile("mine", "hf:me/tiny@" + commit, config_in(files)));
  EXPECT_EQ(prepare(snapshot, mine).profile.profile->id, "mine");
  EXPECT_EQ(prepare(files.folder, mine).profile.profile->id, "llama");
}

TEST(NeedLoop, AModelOfAnotherCommandNamesIt) {
  const auto refusal = [](Loop there, Loop wanted) {
    Profile profile = profile_of("p", "x");
    profile.execution.loop = there;
    const ResolvedProfile resolved{std::make_shared<const Profile>(profile), {}};
    return message_of(ErrorCode::unsupported, [&] { need_loop(resolved, {wanted}, "/m/config.json"); });
  };
  EXPECT_TRUE(
      names(refusal(Loop::encoder_decoder, Loop::autoregressive), {"/m/config.json", "'p'", "transcribe"}));
  EXPECT_TRUE(
      names(refusal(Loop::autoregressive, Loop::encoder_decoder), {"'p'", "autoregressive", "generate"}));
  EXPECT_TRUE(names(refusal(Loop::encoder, Loop::autoregressive), {"'p'", "godwit embed"}));
  EXPECT_TRUE(names(refusal(Loop::autoregressive, Loop::encoder), {"godwit generate"}));
}

TEST(Opening, ASpeechCheckpointIsRefusedByTheCommandThatOpensIt) {
  TinyCheckpoint files;
  files.config = {{"model_type", "whisper"}, {"d_model", 512}};
  EXPECT_TRUE(
      names(message_of(ErrorCode::unsupported, [&] { files.open(); }), {"whisper", "godwit transcribe"}));
}

struct Weights {
  Catalogue catalogue = Catalogue::builtin();
  TinyCheckpoint files;
  std::optional<Opening> opening;
  std::shared_ptr<checkpoint::WeightStore> store;

  explicit Weights(const std::function<void(TinyCheckpoint&)>& change = {}) {
    if (change) change(files);
    files.write("config.json", files.config.dump());
    mx::save_safetensors((files.folder / kTensors).string(), files.tensors);
    opening.emplace(prepare(files.folder, catalogue));
    store = opening->checkpoint.weights(opening->rules);
  }
  std::unique_ptr<Model> create(const ResolvedProfile& profile) const {
    return create_model(catalogue.registry, profile, opening->checkpoint.config(), store);
  }
};

TEST(CreateModel, BuildsOverWeightsThatTheCallerOwns) {
  const Weights weights;
  const auto model = weights.create(weights.opening->profile);
  const mx::array x = mx::ones({1, 8});
  EXPECT_TRUE(mx::array_equal(model->logits(x), weights.files.open()->graph->logits(x)).item<bool>());
}

TEST(CreateModel, AProfileOfAnotherConfigIsRefusedWithBothFingerprints) {
  const Weights weights;
  const checkpoint::Config other = config_of({{"rope_theta", 5.0}});
  const ResolvedProfile wrong = weights.catalogue.profiles.resolve(other, weights.catalogue.capabilities);
  const std::string message = message_of(ErrorCode::invalid_argument, [&] { weights.create(wrong); });
  EXPECT_TRUE(names(message,
                    {"config.json", "'llama'", wrong.config.digits, weights.opening->profile.config.digits}));
  EXPECT_NE(weights.create(weights.opening->profile),
            nullptr);  // the weights are the caller's still
}

TEST(CreateModel, AfterAFailureWeightsAndMemoryAreAsTheyWere) {
  const Weights weights([](TinyCheckpoint& files) {
    files.tensors.erase("model.layers.1.mlp.up_proj.weight");
    files.add("model.layers.7.stray.weight", {8});
  });
  const std::size_t before = mx::get_active_memory();
  const std::string message =
      message_of(ErrorCode::corrupt_file, [&] { weights.create(weights.opening->profile); });
  EXPECT_TRUE(names(message, {"model.layers.1.mlp.up_proj.weight", "model.layers.7.stray.weight"}));
  EXPECT_EQ(mx::get_active_memory(), before);
  EXPECT_TRUE(weights.store->marks().used.empty());
  EXPECT_TRUE(weights.store->marks().missing.empty());
  weights.store->consume("model.norm.weight");  // still there, still the caller's
  EXPECT_EQ(weights.store->marks().used.size(), 1u);
}

TEST(CreateModel, CodeThatIsNotThereIsNamed) {
  const Weights weights;
  ResolvedProfile resolved = weights.opening->profile;
  Profile asks = *resolved.profile;
  asks.execution.implementation = "llama-fast";
  resolved.profile = std::make_shared<const Profile>(asks);
  EXPECT_TRUE(names(message_of(ErrorCode::unsupported, [&] { weights.create(resolved); }),
                    {"'llama'", "llama-fast"}));
}

}  // namespace
}  // namespace godwit::models
