// Profiles and configs for the tests of this module.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/config_fingerprint.h"
#include "models/profile_table.h"
#include "models/tiny_checkpoint.h"

namespace godwit::models {

// Of one type and one graph, with all that the contract asks for.
inline Profile profile_of(const std::string& id, const std::string& type = "llama") {
  Profile profile{.id = id, .model_types = {type}, .capabilities = {}, .execution = {.graph = type}};
  profile.capabilities = capabilities_of(profile.execution);
  return profile;
}

inline checkpoint::Config config_of(const Json& changes = Json::object()) {
  Json json = {{"model_type", "llama"},   {"hidden_size", 8},         {"num_hidden_layers", 2},
               {"intermediate_size", 16}, {"num_attention_heads", 2}, {"vocab_size", 12},
               {"rms_norm_eps", 1e-5}};
  json.update(changes);
  return checkpoint::parse_config(json, std::nullopt, "dir/config.json");
}

struct Published {
  std::string file;
  Json config;
};

// tests/configs: the shapes of config.json that people publish, by name.
inline std::vector<Published> published_configs() {
  std::vector<Published> all;
  for (const auto& entry : std::filesystem::directory_iterator("tests/configs"))
    all.push_back({entry.path().filename().string(), read_json_file(entry.path())});
  std::ranges::sort(all, {}, &Published::file);
  return all;
}

// For one exact checkpoint with this config.
inline Profile exact_profile(const std::string& id, const std::string& artifact,
                             const checkpoint::Config& config) {
  Profile profile = profile_of(id, config.model_type);
  profile.artifact = artifact;
  profile.config = checkpoint::config_fingerprint(config);
  profile.execution.specialization = Specialization::artifact;
  return profile;
}

// All that `profiles` need.
inline CapabilitySet all_capabilities(const ProfileTable& profiles) {
  CapabilitySet all;
  for (const auto& profile : profiles.profiles())
    all.insert(profile->capabilities.begin(), profile->capabilities.end());
  return all;
}

}  // namespace godwit::models
