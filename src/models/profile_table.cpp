#include "models/profile_table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "checkpoint/config_fingerprint.h"

namespace godwit::models {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kOrigin = "profiles";

Loader loader_of(const checkpoint::Config& config) {
  return config.from_gguf ? Loader::gguf : Loader::safetensors;
}

std::string shown_type(const checkpoint::Config& config) {
  if (config.model_type == config.source_model_type) return fmt::format("'{}'", config.model_type);
  return fmt::format("'{}' (read as '{}')", config.source_model_type, config.model_type);
}

std::vector<std::string> ids_of(const std::vector<std::shared_ptr<const Profile>>& profiles) {
  std::vector<std::string> ids;
  for (const auto& profile : profiles) ids.push_back(profile->id);
  return ids;
}

// The same way to open it, with no oracle for its bits.
Profile departed(Profile profile, const std::string& departure) {
  profile.reference = {Tier::l3, Oracle::none, Claim::measured, fmt::format("not measured: {}", departure)};
  return profile;
}

}  // namespace

ProfileTable::ProfileTable(std::vector<Profile> profiles) {
  std::set<std::string> ids;
  for (Profile& profile : profiles) {
    check_contract(profile);
    if (!ids.insert(profile.id).second)
      fail(ErrorCode::invalid_argument, kOrigin, "invalid contract: profile '{}': id is there twice",
           profile.id);
    profiles_.push_back(std::make_shared<const Profile>(std::move(profile)));
  }
}

ProfileTable ProfileTable::with(Profile profile) const {
  std::vector<Profile> all;
  for (const Shared& one : profiles_) all.push_back(*one);
  all.push_back(std::move(profile));
  return ProfileTable(std::move(all));
}

std::vector<std::string> ProfileTable::model_types() const {
  std::set<std::string> types;
  for (const Shared& profile : profiles_)
    types.insert(profile->model_types.begin(), profile->model_types.end());
  return {types.begin(), types.end()};
}

ProfileTable::Shared ProfileTable::exact(const checkpoint::Config& config,
                                         const checkpoint::Fingerprint& fingerprint,
                                         std::string_view artifact) const {
  std::vector<Shared> found;
  for (const Shared& profile : profiles_)
    if (!profile->artifact.empty() && profile->artifact == artifact) found.push_back(profile);
  if (found.empty()) return nullptr;
  if (found.size() > 1)
    fail(ErrorCode::invalid_argument, kOrigin, "{}: the checkpoint {} has several profiles: {}",
         config.origin, artifact, fmt::join(ids_of(found), ", "));
  const Profile& profile = *found[0];
  if (*profile.config != fingerprint)
    fail(ErrorCode::unsupported, kOrigin,
         "{}: the profile '{}' of {} expects the config fingerprint {}, the "
         "config has {}",
         config.origin, profile.id, artifact, profile.config->digits, fingerprint.digits);
  if (profile.execution.loader != loader_of(config))
    fail(ErrorCode::unsupported, kOrigin,
         "{}: the profile '{}' of {}: its loader is {}, the config is one for "
         "{}",
         config.origin, profile.id, artifact, name_of(profile.execution.loader), name_of(loader_of(config)));
  if (!profile.takes(config))
    fail(ErrorCode::unsupported, kOrigin,
         "{}: the profile '{}' of {}: the graph {} does not take model_type "
         "'{}'",
         config.origin, profile.id, artifact, profile.execution.graph, config.source_model_type);
  return found[0];
}

ProfileTable::Shared ProfileTable::family(const checkpoint::Config& config) const {
  std::vector<Shared> found;
  for (const Shared& profile : profiles_)
    if (profile->artifact.empty() && profile->execution.loader == loader_of(config) && profile->takes(config))
      found.push_back(profile);
  if (found.size() == 1) return found[0];
  if (found.size() > 1)
    fail(ErrorCode::internal, kOrigin, "{}: several profiles take this config: {}", config.origin,
         fmt::join(ids_of(found), ", "));
  const std::vector<std::string> types = model_types();
  if (!std::ranges::binary_search(types, config.model_type))
    fail(ErrorCode::unsupported, kOrigin, "{}: no profile for model_type {}; there are: {}", config.origin,
         shown_type(config), fmt::join(types, ", "));
  fail(ErrorCode::unsupported, kOrigin,
       "{}: model_type '{}' is known, but no profile takes a {} checkpoint of "
       "this shape",
       config.origin, config.source_model_type, name_of(loader_of(config)));
}

ResolvedProfile ProfileTable::resolve(const checkpoint::Config& config, const CapabilitySet& engine,
                                      const std::optional<std::string>& artifact) const {
  ResolvedProfile resolved{nullptr, checkpoint::config_fingerprint(config)};
  if (artifact) resolved.profile = exact(config, resolved.config, *artifact);
  if (!resolved.profile) resolved.profile = family(config);
  if (!config.departure.empty() && resolved.profile->reference.tier == Tier::l1)
    resolved.profile = std::make_shared<const Profile>(departed(*resolved.profile, config.departure));
  const CapabilitySet missing = missing_of(resolved.profile->capabilities, engine);
  if (!missing.empty())
    fail(ErrorCode::unsupported, kOrigin, "{}: the profile '{}' needs {}, which this engine lacks",
         config.origin, resolved.profile->id, fmt::join(missing, ", "));
  return resolved;
}

std::optional<std::string> artifact_of(const fs::path& checkpoint) {
  fs::path folder = fs::absolute(checkpoint).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // a trailing slash
  std::string file;
  if (folder.extension() == ".gguf") {
    file = ":" + folder.filename().string();
    folder = folder.parent_path();
  }
  const std::string revision = folder.filename().string();
  const std::string repository = folder.parent_path().parent_path().filename().string();
  constexpr std::string_view kPrefix = "models--";
  const bool is_commit = revision.size() >= 40 && revision.size() <= 64 &&
                         revision.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_commit || folder.parent_path().filename() != "snapshots" || !repository.starts_with(kPrefix))
    return std::nullopt;
  std::string name = repository.substr(kPrefix.size());
  if (const auto slash = name.find("--"); slash != std::string::npos) name.replace(slash, 2, "/");
  return fmt::format("hf:{}@{}{}", name, revision, file);
}

}  // namespace godwit::models
