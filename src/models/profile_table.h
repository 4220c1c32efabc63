// All profiles of an engine, and the choice of the one that a checkpoint is opened by.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/profile.h"

namespace godwit::models {

// A profile for one config. Frozen: it is shared, not copied, and nobody can write to it.
struct ResolvedProfile {
  std::shared_ptr<const Profile> profile;
  checkpoint::Fingerprint config;  // of the config that it was resolved for
};

// An immutable value.
class ProfileTable {
 public:
  // Throws what check_contract() throws, and the same for two profiles of one id.
  explicit ProfileTable(std::vector<Profile> profiles);
  // A table with one more profile; this one stays as it is.
  ProfileTable with(Profile profile) const;

  const std::vector<std::shared_ptr<const Profile>>& profiles() const { return profiles_; }
  std::vector<std::string> model_types() const;  // sorted, each once

  // Reads no file. In this order:
  // 1. Profiles of the exact checkpoint `artifact`. Two of them, another fingerprint of the config or a
  // config that
  //    the graph does not take is an error; there is no way on from here.
  // 2. Profiles of families that load what the config came from and take it. They are disjoint: two of them
  // are an
  //    error naming both.
  // 3. Otherwise Error{unsupported} naming config.origin, the type and all types that there are. A capability
  // that `engine` lacks is Error{unsupported} naming all that are missing.
  ResolvedProfile resolve(const checkpoint::Config& config, const CapabilitySet& engine,
                          const std::optional<std::string>& artifact = {}) const;

 private:
  using Shared = std::shared_ptr<const Profile>;
  Shared exact(const checkpoint::Config& config, const checkpoint::Fingerprint& fingerprint,
               std::string_view artifact) const;
  Shared family(const checkpoint::Config& config) const;

  std::vector<Shared> profiles_;
};

// "hf:org/name@revision" for the folder models--org--name/snapshots/<40 to 64 hexadecimal digits>, the same
// and
// ":file" for a .gguf file in it. Any other path names nothing.
std::optional<std::string> artifact_of(const std::filesystem::path& checkpoint);

}  // namespace godwit::models
