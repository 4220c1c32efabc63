// What the files of dense families say beyond their goldens: which row takes a config, and what is refused by
// name.
#include <gtest/gtest.h>

#include "models/catalogue.h"
#include "models/tiny_checkpoint.h"

namespace godwit::models {
namespace {

using checkpoint::Config;

Json base(const char* model_type) {
  return {{"model_type", model_type},
          {"hidden_size", 64},
          {"num_hidden_layers", 4},
          {"intermediate_size", 128},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"vocab_size", 96},
          {"rms_norm_eps", 1e-6},
          {"max_position_embeddings", 512},
          {"tie_word_embeddings", false}};
}

Config parsed(const Json& json) {
  return checkpoint::parse_config(json, std::nullopt, "dir/config.json", Registry::builtin().dialects());
}

Family family_of(const Json& json) {
  const Catalogue catalogue = Catalogue::builtin();
  return catalogue.registry.select(*catalogue.profiles.resolve(parsed(json), catalogue.capabilities).profile);
}

// What Family::rules, which runs before any tensor file is opened, says to a config.
std::string refusal(ErrorCode code, const char* model_type, const Json& changes = Json::object()) {
  Json json = base(model_type);
  json.update(changes);
  return message_of(code, [&] { family_of(json).rules(parsed(json)); });
}

Json minicpm5_shape() {
  Json json = base("llama");
  json.update({{"hidden_size", 1536},
               {"num_hidden_layers", 24},
               {"num_attention_heads", 16},
               {"num_key_value_heads", 2},
               {"head_dim", 128},
               {"vocab_size", 130560}});
  return json;
}

TEST(DenseFamilies, MiniCpm5IsARowOfItsOwnByItsExactShape) {
  EXPECT_EQ(family_of(minicpm5_shape()).id, "minicpm5");
  const std::pair<const char*, Json> others[] = {{"hidden_size", 2048},
                                                 {"num_hidden_layers", 42},
                                                 {"num_attention_heads", 12},
                                                 {"num_key_value_heads", 4},
                                                 {"head_dim", 96},
                                                 {"vocab_size", 130561},
                                                 {"tie_word_embeddings", true}};
  for (const auto& [key, value] : others) {
    Json json = minicpm5_shape();
    json[key] = value;
    EXPECT_EQ(family_of(json).id, "llama") << key;
  }
  Json json = minicpm5_shape();
  json["tie_word_embeddings"] = nullptr;  // Python's None: untied
  EXPECT_EQ(family_of(json).id, "minicpm5");
  json.erase("tie_word_embeddings");
  EXPECT_EQ(family_of(json).id, "llama");
}

TEST(DenseFamilies, WindowsThatTheOracleReadsInFullAreLeftOutWithAWarning) {
  Json json = base("granite");
  json["layer_types"] = {"sliding_attention", "full_attention", "sliding_attention", "full_attention"};
  json["sliding_window"] = 8;
  const Config config = parsed(json);
  EXPECT_TRUE(config.layer_types.empty());
  EXPECT_FALSE(config.sliding_window.has_value());
  ASSERT_EQ(config.warnings.size(), 1u);
  EXPECT_TRUE(names(config.warnings[0], {"dir/config.json", "layer_types", "granite"}));
  json["layer_types"] = {"full_attention", "full_attention", "full_attention", "full_attention"};
  EXPECT_TRUE(parsed(json).warnings.empty());
}

TEST(DenseFamilies, WhatAGraphLacksIsRefusedByName) {
  const Json sliding = {
      {"layer_types", {"sliding_attention", "full_attention", "full_attention", "full_attention"}},
      {"sliding_window", 8}};
  const auto unsupported = ErrorCode::unsupported, corrupt = ErrorCode::corrupt_file;
  EXPECT_TRUE(names(refusal(unsupported, "smollm3", sliding), {"dir/config.json", "layer 0", "smollm3"}));
  EXPECT_TRUE(names(refusal(corrupt, "smollm3", {{"no_rope_layers", {1, 0}}}), {"no_rope_layers", "2", "4"}));
  EXPECT_TRUE(
      names(refusal(corrupt, "smollm3", {{"no_rope_layer_interval", 0}}), {"no_rope_layer_interval", "0"}));
  EXPECT_TRUE(
      names(refusal(unsupported, "helium", {{"head_dim", 32}}), {"dir/config.json", "4 heads of 32", "64"}));
  const Json llama3 = {{"rope_scaling", {{"rope_type", "llama3"}, {"factor", 8.0}}}};
  for (const char* type : {"helium", "internlm2", "internlm3"})
    EXPECT_TRUE(names(refusal(unsupported, type, llama3), {"dir/config.json", "llama3", type})) << type;
  EXPECT_TRUE(names(refusal(corrupt, "ernie4_5"), {"use_bias"}));
  EXPECT_TRUE(
      names(refusal(unsupported, "minicpm", {{"tie_word_embeddings", true}}), {"tie_word_embeddings"}));
  EXPECT_TRUE(names(refusal(corrupt, "granite"), {"attention_multiplier"}));
  EXPECT_TRUE(names(refusal(corrupt, "olmo3"), {"sliding_window"}));
  EXPECT_TRUE(
      names(refusal(corrupt, "exaone4", {{"sliding_window_pattern", 4}}), {"sliding_window_pattern"}));
  EXPECT_TRUE(
      names(refusal(corrupt, "exaone4", {{"sliding_window_pattern", "LG"}}), {"'LG'", "sliding_window"}));
  const Json no_alpha = {{"rope_scaling", {{"type", "dynamic"}, {"factor", 1.0}}}};
  EXPECT_TRUE(names(refusal(corrupt, "hunyuan_v1_dense", no_alpha), {"rope_scaling", "alpha"}));
  EXPECT_TRUE(names(refusal(corrupt, "ministral3"), {"llama_4_scaling_beta"}));
  EXPECT_TRUE(names(refusal(unsupported, "seed_oss", {{"hidden_act", "gelu"}}), {"gelu", "silu"}));
}

}  // namespace
}  // namespace godwit::models
