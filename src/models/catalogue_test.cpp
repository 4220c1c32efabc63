#include "models/catalogue.h"

#include <array>

#include "models/profile_test_support.h"

namespace godwit::models {
namespace {

constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {{{.architecture = "hyena"}}};
constexpr checkpoint::Dialect kBoth = {.model_type = "hyena", .gguf = kGguf};
constexpr checkpoint::Dialect kPlain = {.model_type = "plain"};

Family family(const checkpoint::Dialect* dialect) {
  return {.id = dialect->model_type, .dialect = dialect, .rules = nullptr, .needs = nullptr, .make = nullptr};
}

TEST(Catalogue, AFamilyHasOneProfileForEachLoader) {
  const std::vector<Profile> both = profiles_of(family(&kBoth)), plain = profiles_of(family(&kPlain));
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].id, "hyena");
  EXPECT_EQ(both[1].id, "hyena-gguf");
  EXPECT_EQ(both[1].execution.loader, Loader::gguf);
  ASSERT_EQ(plain.size(), 1u);
  EXPECT_EQ(plain[0].execution.loader, Loader::safetensors);
}

TEST(Catalogue, FurtherCodeOfAGraphHasNoProfileOfItsOwn) {
  Family fast = family(&kBoth);
  fast.id = "hyena-fast";
  fast.graph = "hyena";
  EXPECT_TRUE(profiles_of(fast).empty());
  EXPECT_EQ(Catalogue::of(Registry({family(&kBoth), fast})).profiles.profiles().size(), 2u);
}

TEST(Catalogue, AProfilePromisesWhatItsFamilySays) {
  Family exact = family(&kBoth), near = exact, own = exact;
  EXPECT_EQ(text_of(profiles_of(exact)[0].reference), "L1, mlx-lm, bit-exact");
  near.oracle = Oracle::transformers;
  near.figures = "cosine 0.9999";
  EXPECT_EQ(text_of(profiles_of(near)[0].reference), "L3, transformers, bounded");
  EXPECT_EQ(profiles_of(near)[0].reference.figures, "cosine 0.9999");
  own.oracle = Oracle::none;
  own.figures = "perplexity 12";
  EXPECT_EQ(text_of(profiles_of(own)[0].reference), "L3, none, measured");
  EXPECT_FALSE(profiles_of(exact)[1].native.has_value());
  const std::vector<Profile> native = profiles_of(measured_in_native(exact));
  EXPECT_EQ(text_of(native[0].native.value()), "L3, none, measured");
  EXPECT_EQ(text_of(native[1].native.value()), "L3, none, measured");
}

constexpr std::array<LesserPromise, 2> kLesser = {
    {{.id = "odd",
      .applies = [](const checkpoint::Config& config) { return config.layers % 2 == 1; },
      .figures = "at most twice as far"},
     {.id = "wide",
      .loader = Loader::gguf,
      .applies = [](const checkpoint::Config& config) { return config.hidden > 64; },
      .figures = "at most thrice as far"}}};

TEST(Catalogue, ALesserPromiseTakesItsConfigsFromTheProfileOfItsLoader) {
  Family lesser = family(&kBoth);
  lesser.accepts = [](const checkpoint::Config& config) { return config.heads == 2; };
  lesser.lesser = kLesser;
  const std::vector<Profile> profiles = profiles_of(lesser);
  ASSERT_EQ(profiles.size(), 4u);
  const auto takers = [&](const Json& changes) {
    checkpoint::Config config = config_of(changes);
    config.model_type = "hyena";
    std::vector<std::string> ids;
    for (const Profile& profile : profiles)
      if (profile.takes(config)) ids.push_back(profile.id);
    return ids;
  };
  using Ids = std::vector<std::string>;
  EXPECT_EQ(takers({{"num_hidden_layers", 2}}), Ids({"hyena", "hyena-gguf"}));
  EXPECT_EQ(takers({{"num_hidden_layers", 3}}), Ids({"hyena-odd", "hyena-gguf"}));
  EXPECT_EQ(takers({{"num_hidden_layers", 3}, {"hidden_size", 128}}), Ids({"hyena-odd", "hyena-gguf-wide"}));
  EXPECT_EQ(takers({{"num_hidden_layers", 3}, {"num_attention_heads", 4}}), Ids());
  EXPECT_EQ(text_of(profiles[1].reference), "L3, mlx-lm, bounded");
  EXPECT_EQ(profiles[1].reference.figures, "at most twice as far");
  EXPECT_EQ(text_of(profiles[0].reference), "L1, mlx-lm, bit-exact");
}

TEST(Catalogue, TheEngineCanDoWhatItsFamiliesNeed) {
  constexpr std::array<std::string_view, 1> kState = {kRecurrentState};
  Family recurrent = family(&kPlain);
  recurrent.capabilities = kState;
  const Catalogue catalogue = Catalogue::of(Registry({recurrent}));
  EXPECT_EQ(catalogue.capabilities,
            CapabilitySet({"autoregressive", "plain-graph", "recurrent-state", "safetensors"}));
  EXPECT_EQ(catalogue.profiles.profiles()[0]->capabilities, catalogue.capabilities);
}

TEST(Catalogue, EveryProfileOfThisBuildHasItsCode) {
  const Catalogue catalogue = Catalogue::builtin();
  EXPECT_GE(catalogue.profiles.profiles().size(), 8u);
  for (const auto& profile : catalogue.profiles.profiles()) {
    EXPECT_NO_THROW(catalogue.registry.select(*profile)) << profile->id;
    EXPECT_TRUE(missing_of(profile->capabilities, catalogue.capabilities).empty()) << profile->id;
  }
}

}  // namespace
}  // namespace godwit::models
