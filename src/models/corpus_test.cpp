// Published shapes of config.json (tests/configs) against the registry: each gets exactly one profile, or a
// refusal that names its type.
#include <fstream>
#include <sstream>

#include "models/catalogue.h"
#include "models/profile_test_support.h"

namespace godwit::models {
namespace {

std::vector<std::string> takers(const Catalogue& catalogue, const checkpoint::Config& config, Loader loader) {
  std::vector<std::string> ids;
  for (const auto& profile : catalogue.profiles.profiles())
    if (profile->execution.loader == loader && profile->takes(config)) ids.push_back(profile->id);
  return ids;
}

bool is_recurrent(const cache::StateNeeds& needs) {
  return std::ranges::any_of(
      needs, [](const cache::LayerNeed& n) { return n.content == cache::Content::recurrent; });
}

// The whole way before weights, for a type that some family reads.
void expect_one_profile(const Catalogue& catalogue, const Published& published) {
  const checkpoint::Config config =
      checkpoint::parse_config(published.config, std::nullopt, published.file, catalogue.registry.dialects());
  EXPECT_EQ(takers(catalogue, config, Loader::safetensors).size(), 1u);
  const ResolvedProfile resolved = catalogue.profiles.resolve(config, catalogue.capabilities);
  const Family& family = catalogue.registry.select(*resolved.profile);
  EXPECT_NO_THROW(static_cast<void>(family.rules(config)));
  const cache::StateNeeds needs = family.needs ? family.needs(config) : cache::StateNeeds();
  EXPECT_EQ(is_recurrent(needs), resolved.profile->capabilities.contains(kRecurrentState));
  if (loaders_of(family).size() < 2) return;
  EXPECT_EQ(takers(catalogue, config, Loader::gguf).size(), 1u);
}

TEST(PublishedConfigs, EachGetsExactlyOneProfileOrARefusalThatNamesItsType) {
  const Catalogue catalogue = Catalogue::builtin();
  int resolved = 0, refused = 0;
  for (const Published& published : published_configs()) {
    SCOPED_TRACE(published.file);
    const std::string type = published.config["model_type"].get<std::string>();
    if (catalogue.registry.dialects().of_type(type)) {
      EXPECT_NO_THROW(expect_one_profile(catalogue, published));
      ++resolved;
      continue;
    }
    EXPECT_TRUE(names(
        message_of(ErrorCode::unsupported, [&] { catalogue.registry.check_type(type, published.file); }),
        {published.file, "'" + type + "'"}));
    ++refused;
  }
  EXPECT_GE(resolved, 6);
  EXPECT_GE(refused, 4);
}

TEST(PublishedConfigs, EveryFamilyHasOne) {
  const Catalogue catalogue = Catalogue::builtin();
  std::set<std::string_view> left;
  for (const Family& family : catalogue.registry.families()) left.insert(family.id);
  for (const Published& published : published_configs()) {
    const std::string type = published.config["model_type"].get<std::string>();
    if (!catalogue.registry.dialects().of_type(type)) continue;
    const checkpoint::Config config = checkpoint::parse_config(published.config, std::nullopt, published.file,
                                                               catalogue.registry.dialects());
    left.erase(
        catalogue.registry.select(*catalogue.profiles.resolve(config, catalogue.capabilities).profile).id);
  }
  EXPECT_EQ(left.size(), 0u) << "tests/configs has no config of " << *left.begin();
}

}  // namespace
}  // namespace godwit::models
