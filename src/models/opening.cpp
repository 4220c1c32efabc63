#include "models/opening.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "checkpoint/config_fingerprint.h"

namespace godwit::models {
namespace {

namespace fs = std::filesystem;

std::string_view command_for(Loop loop) {
  constexpr std::array<std::string_view, 4> kCommands = {"godwit generate", "godwit generate",
                                                         "godwit transcribe", "godwit embed"};
  return kCommands.at(static_cast<std::size_t>(loop));
}

// An unknown model_type is named as such even where its config lacks the keys that every known family has.
void check_model_type(const fs::path& path, const Registry& registry) {
  if (!fs::exists(path / "config.json")) return;
  if (const auto type = checkpoint::read_model_type(path))
    registry.check_type(*type, (path / "config.json").string());
}

void check_config(const ResolvedProfile& profile, const checkpoint::Config& config) {
  const checkpoint::Fingerprint found = checkpoint::config_fingerprint(config);
  if (found != profile.config)
    fail(ErrorCode::invalid_argument, "models",
         "{}: the profile '{}' was resolved for the config {}, this one is {}", config.origin,
         profile.profile->id, profile.config.digits, found.digits);
}

}  // namespace

std::optional<std::string> unread_window(const checkpoint::Config& config, const cache::StateNeeds& needs) {
  // Of the file: config.sliding_window is gone where the dialect reads none.
  const std::int64_t window = config.integer("sliding_window", 0);
  const bool slides = std::ranges::any_of(
      needs, [](const cache::LayerNeed& need) { return need.window == cache::WindowKind::sliding; });
  if (window == 0 || slides || config.has("layer_types") || !config.boolean("use_sliding_window", true))
    return std::nullopt;
  if (config.max_position_embeddings && window >= *config.max_position_embeddings) return std::nullopt;
  return fmt::format(
      "{}: sliding_window is {}: mlx-lm reads every layer in full for {}, and so does this graph",
      config.origin, window, config.source_model_type);
}

std::optional<std::string> unread_layer_types(const checkpoint::Config& config, const cache::StateNeeds& needs) {
  for (std::size_t i = 0; i < std::min(config.layer_types.size(), needs.size()); ++i) {
    const std::string& type = config.layer_types[i];
    const bool slides = needs[i].window == cache::WindowKind::sliding;
    if (type != (slides ? "full_attention" : "sliding_attention")) continue;
    return fmt::format("{}: layer_types says that layer {} is '{}': mlx-lm goes by sliding_window_pattern {} for {}, and so "
                       "does this graph",
                       config.origin, i, type, config.sliding_window_pattern.value_or(0), config.source_model_type);
  }
  return std::nullopt;
}

Opening prepare(const fs::path& path, const Catalogue& catalogue,
                const std::optional<std::string>& artifact) {
  check_model_type(path, catalogue.registry);
  checkpoint::Checkpoint checkpoint = checkpoint::Checkpoint::open(path, catalogue.registry.dialects());
  const checkpoint::Config& config = checkpoint.config();
  const ResolvedProfile profile = catalogue.profiles.resolve(
      config, catalogue.capabilities, artifact ? artifact : artifact_of(checkpoint.path()));
  const Family family = catalogue.registry.select(*profile.profile);
  checkpoint::WeightRules rules = family.rules(config);
  cache::StateNeeds needs = family.needs ? family.needs(config) : cache::StateNeeds();
  std::vector<std::string> warnings;
  if (family.needs)
    for (auto& warning : {unread_window(config, needs), unread_layer_types(config, needs)})
      if (warning) warnings.push_back(*warning);
  return {std::move(checkpoint), profile, family, std::move(rules), std::move(needs), std::move(warnings)};
}

void need_loop(const ResolvedProfile& profile, std::initializer_list<Loop> wanted, std::string_view origin) {
  const Loop loop = profile.profile->execution.loop;
  if (std::ranges::find(wanted, loop) != wanted.end()) return;
  fail(ErrorCode::unsupported, "models", "{}: the profile '{}' runs {}; '{}' opens it", origin,
       profile.profile->id, name_of(loop), command_for(loop));
}

std::unique_ptr<Model> create_model(const Registry& registry, const ResolvedProfile& profile,
                                    const checkpoint::Config& config,
                                    const std::shared_ptr<checkpoint::WeightStore>& weights) {
  check_config(profile, config);
  need_loop(profile, {Loop::autoregressive}, config.origin);
  const Family& family = registry.select(*profile.profile);
  checkpoint::WeightMarks before = weights->marks();
  try {
    std::unique_ptr<Model> model = family.make(checkpoint::WeightScope(weights, ""), config);
    weights->audit();
    return model;
  } catch (...) {
    weights->restore(std::move(before));
    throw;
  }
}

}  // namespace godwit::models
