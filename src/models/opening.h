// Opening a checkpoint, in two halves.
//
// The order is a contract: config -> one profile -> its implementation -> what the graph refuses -> weights
// -> audit. prepare() is all of it before weights: it reads what describes the model and opens no tensor file
// of a folder.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/layer_need.h"
#include "checkpoint/checkpoint.h"
#include "models/catalogue.h"
#include "models/model.h"

namespace godwit::models {

struct Opening {
  checkpoint::Checkpoint checkpoint;
  ResolvedProfile profile;
  Family family;  // the code that the profile selects
  checkpoint::WeightRules rules;
  cache::StateNeeds needs;  // empty for an encoder
  std::vector<std::string> warnings;  // beside the config's own
};

// A warning where the config gives a sliding_window below its positions and no layer of the graph has one, because the
// oracle applies none: nothing where it is switched off (use_sliding_window), or where layer_types speaks for itself.
std::optional<std::string> unread_window(const checkpoint::Config& config, const cache::StateNeeds& needs);

// A warning where layer_types of the config says of a layer that it slides, or that it does not, and the graph does otherwise.
std::optional<std::string> unread_layer_types(const checkpoint::Config& config, const cache::StateNeeds& needs);

// `artifact` names the exact checkpoint; absent: what artifact_of() makes of the path. Throws what
// Checkpoint::open(), ProfileTable::resolve(), Registry::select() and the family's rules and needs throw.
Opening prepare(const std::filesystem::path& path, const Catalogue& catalogue,
                const std::optional<std::string>& artifact = {});

// Refuses a model that another command opens, naming it: Error{unsupported} with `origin`, the profile, its
// loop and the command for it.
void need_loop(const ResolvedProfile& profile, std::initializer_list<Loop> wanted, std::string_view origin);

// Builds the graph of a decoder over weights that the caller owns, and audits that every tensor is used and every
// parameter there. `weights` were made with the family's rules. A profile that was resolved for another
// config is Error{invalid_argument} naming both fingerprints. Whatever is thrown, the caller's weights are as
// they were before.
std::unique_ptr<Model> create_model(const Registry& registry, const ResolvedProfile& profile,
                                    const checkpoint::Config& config,
                                    const std::shared_ptr<checkpoint::WeightStore>& weights);

}  // namespace godwit::models
