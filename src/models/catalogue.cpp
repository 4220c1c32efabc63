#include "models/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace godwit::models {
namespace {

Fidelity reference_of(const Family& family, std::string_view figures) {
  if (figures.empty()) return {Tier::l1, family.oracle, Claim::bit_exact, ""};
  const Claim claim = family.oracle == Oracle::none ? Claim::measured : Claim::bounded;
  return {Tier::l3, family.oracle, claim, std::string(figures)};
}

CapabilitySet needed_by(const Family& family, const Execution& execution) {
  CapabilitySet all = capabilities_of(execution);
  all.insert(family.capabilities.begin(), family.capabilities.end());
  return all;
}

Execution execution_of(const Family& family, Loader loader) {
  return {.loader = loader,
          .graph = std::string(graph_of(family)),
          .loop = family.loop,
          .specialization = family.specialization};
}

using Accepts = std::function<bool(const checkpoint::Config&)>;

std::vector<LesserPromise> lesser_of(const Family& family, Loader loader) {
  std::vector<LesserPromise> own(family.lesser.begin(), family.lesser.end());
  std::erase_if(own, [&](const LesserPromise& promise) { return promise.loader != loader; });
  return own;
}

// The configs of the family that none of its lesser promises takes.
Accepts full_promise(const Family& family, Loader loader) {
  const std::vector<LesserPromise> lesser = lesser_of(family, loader);
  if (lesser.empty()) return family.accepts ? Accepts(family.accepts) : Accepts();
  return [accepts = family.accepts, lesser](const checkpoint::Config& config) {
    return (!accepts || accepts(config)) && std::ranges::none_of(lesser, [&](const LesserPromise& promise) {
             return promise.applies(config);
           });
  };
}

Accepts lesser_promise(const Family& family, const LesserPromise& promise) {
  return [accepts = family.accepts, applies = promise.applies](const checkpoint::Config& config) {
    return (!accepts || accepts(config)) && applies(config);
  };
}

Profile profile_of(const Family& family, Loader loader) {
  std::vector<std::string> types = {std::string(family.dialect->model_type)};
  types.insert(types.end(), family.dialect->aliases.begin(), family.dialect->aliases.end());
  const Execution execution = execution_of(family, loader);
  Profile profile{.id = std::string(family.id) + (loader == Loader::gguf ? "-gguf" : ""),
                  .model_types = std::move(types),
                  .accepts = full_promise(family, loader),
                  .capabilities = needed_by(family, execution),
                  .execution = execution,
                  .reference = reference_of(family, family.figures)};
  if (!family.native_figures.empty())
    profile.native = {Tier::l3, Oracle::none, Claim::measured, std::string(family.native_figures)};
  return profile;
}

}  // namespace

std::vector<Profile> profiles_of(const Family& family) {
  if (graph_of(family) != family.id) return {};
  std::vector<Profile> profiles;
  for (const Loader loader : loaders_of(family)) {
    const Profile whole = profile_of(family, loader);
    profiles.push_back(whole);
    for (const LesserPromise& promise : lesser_of(family, loader)) {
      Profile profile = whole;
      profile.id += fmt::format("-{}", promise.id);
      profile.accepts = lesser_promise(family, promise);
      profile.reference = reference_of(family, promise.figures);
      profiles.push_back(std::move(profile));
    }
  }
  return profiles;
}

Catalogue Catalogue::builtin() { return of(Registry::builtin()); }

Catalogue Catalogue::of(const Registry& registry) {
  std::vector<Profile> profiles;
  CapabilitySet capabilities;
  for (const Family& family : registry.families()) {
    for (const Loader loader : loaders_of(family))
      capabilities.merge(needed_by(family, execution_of(family, loader)));
    std::vector<Profile> own = profiles_of(family);
    profiles.insert(profiles.end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
  }
  return {registry, ProfileTable(std::move(profiles)), std::move(capabilities)};
}

}  // namespace godwit::models
