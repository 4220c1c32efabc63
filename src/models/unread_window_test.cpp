// A sliding_window that no layer has is named in a warning: every decoder family of the registry is asked.
#include <set>

#include "models/catalogue.h"
#include "models/opening.h"
#include "models/profile_test_support.h"

namespace godwit::models {
namespace {

// Each published config that some decoder family reads, so that each family is there (corpus_test.cpp).
std::vector<Published> decoders() {
  const Catalogue catalogue = Catalogue::builtin();
  std::vector<Published> all;
  for (Published& published : published_configs()) {
    const std::string type = published.config["model_type"].get<std::string>();
    if (type != "bert" && catalogue.registry.dialects().of_type(type)) all.push_back(std::move(published));
  }
  return all;
}

// The decoder's object of a nested config, or the config itself.
Json& inner(Json& config) { return config.contains("text_config") ? config["text_config"] : config; }

struct Asked {
  std::string family;
  bool slides = false;
  std::optional<std::string> warning;
};

Asked ask(const Json& json) {
  const Catalogue catalogue = Catalogue::builtin();
  const auto config =
      checkpoint::parse_config(json, std::nullopt, "dir/config.json", catalogue.registry.dialects());
  const Family& family =
      catalogue.registry.select(*catalogue.profiles.resolve(config, catalogue.capabilities).profile);
  const cache::StateNeeds needs = family.needs(config);
  const bool slides = std::ranges::any_of(
      needs, [](const cache::LayerNeed& need) { return need.window == cache::WindowKind::sliding; });
  return {std::string(family.id), slides, unread_window(config, needs)};
}

// The config with only this said of windows.
Json with_window(Json config, const Json& window, const Json& changes = Json::object()) {
  Json& text = inner(config);
  for (const char* key : {"use_sliding_window", "max_window_layers", "layer_types"}) text.erase(key);
  text["max_position_embeddings"] = 4096;
  text["sliding_window"] = window;
  text.update(changes);
  return config;
}

TEST(UnreadWindow, EveryFamilyAppliesABareWindowOrNamesIt) {
  std::set<std::string> silent, applying;
  for (Published& published : decoders()) {
    SCOPED_TRACE(published.file);
    const Asked asked = ask(with_window(published.config, 1024));
    EXPECT_NE(asked.slides, asked.warning.has_value()) << asked.family;
    if (asked.warning) {
      EXPECT_TRUE(names(*asked.warning, {"dir/config.json", "sliding_window is 1024", "mlx-lm",
                                         published.config["model_type"].get<std::string>()}));
    }
    (asked.slides ? applying : silent).insert(asked.family);
  }
  // As mlx-lm's graphs are written.
  for (const char* family :
       {"gemma2", "phi3", "starcoder2", "llama", "qwen2", "qwen3", "qwen3_moe", "exaone4"})
    EXPECT_TRUE(silent.contains(family)) << family;
  for (const char* family : {"cohere2", "gemma3_text", "gemma4", "olmo3", "exaone4"})
    EXPECT_TRUE(applying.contains(family)) << family;
}

TEST(UnreadWindow, NothingIsSaidOfAWindowThatHidesNothing) {
  for (Published& published : decoders()) {
    SCOPED_TRACE(published.file);
    const Json& config = published.config;
    EXPECT_EQ(ask(config).warning.has_value(),
              published.file == "gemma-2-9b.json" || published.file == "starcoder2-3b.json");
    if (ask(with_window(config, 1024)).slides) continue;
    EXPECT_FALSE(ask(with_window(config, nullptr)).warning.has_value());
    EXPECT_FALSE(ask(with_window(config, 4096)).warning.has_value());
    EXPECT_TRUE(ask(with_window(config, 4095)).warning.has_value());
    EXPECT_FALSE(ask(with_window(config, 1024, {{"use_sliding_window", false}})).warning.has_value());
  }
}

TEST(UnreadWindow, IsLoggedWhereAModelIsOpened) {
  TinyCheckpoint files;
  files.config.erase("max_position_embeddings");  // how far it would reach is open then
  files.config["model_type"] = "mistral";
  files.config["sliding_window"] = 16;
  files.open();
  std::vector<std::string> warnings;
  ModelOptions options;
  options.path = files.folder;
  ModelBundle::open(options, Log([&](LogLevel level, std::string_view text) {
                      if (level == LogLevel::warning) warnings.emplace_back(text);
                    }));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(names(warnings[0], {"config.json", "sliding_window is 16", "mistral"}));
}

}  // namespace
}  // namespace godwit::models
