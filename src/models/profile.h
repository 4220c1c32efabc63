// How one kind of checkpoint is opened, and what is promised about it. Construction only: KV policy,
// adapters, grammar and sampling are chosen for each request.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/numeric_mode.h"
#include "checkpoint/config.h"
#include "checkpoint/fingerprint.h"
#include "models/capability.h"
#include "models/execution.h"
#include "models/fidelity.h"

namespace godwit::models {

struct Profile {
  std::string id = {};
  // One exact checkpoint ("hf:org/name@revision") and the fingerprint that its config must have: both or
  // neither.
  std::string artifact = {};
  std::optional<checkpoint::Fingerprint> config = {};
  // The configs that the graph takes: these model_types, where `accepts` is absent or true.
  std::vector<std::string> model_types = {};
  std::function<bool(const checkpoint::Config&)> accepts = {};
  CapabilitySet capabilities = {};  // at least capabilities_of(execution)
  Execution execution = {};
  Fidelity reference = {};              // in `reference` arithmetic
  std::optional<Fidelity> native = {};  // in `native` arithmetic, always L3; absent: not offered

  bool takes(const checkpoint::Config& given) const;
};

// What runs a decode step in that arithmetic: in `native` a plan recorded from the graph for the config at hand, in
// `reference` the graph itself.
Specialization specialization_of(const Profile& profile, NumericMode mode);

// Throws Error{invalid_argument} "invalid contract" naming id and field: a blank id, graph or list of types,
// half of the pair of artifact and config, an execution whose parts contradict each other, a promise that
// does not exist, fewer capabilities than the execution needs.
void check_contract(const Profile& profile);

}  // namespace godwit::models
