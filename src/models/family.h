// What one family file offers: a row of the registry.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "cache/layer_need.h"
#include "checkpoint/config.h"
#include "checkpoint/weight_scope.h"
#include "checkpoint/weight_store.h"
#include "models/model.h"

namespace godwit::models {

struct Family {
  std::string_view model_type;                // after the remap of aliases
  std::span<const std::string_view> aliases;  // other model_types that are the same graph
  // Tensors to leave out. Called before any tensor file is opened, so it refuses configs that the graph
  // cannot serve.
  checkpoint::WeightRules (*rules)(const checkpoint::Config& config);
  // What each layer that owns state must remember, as far as the config says it: a KV policy is refused by
  // these before any tensor file is opened. The graph's own state_needs() add only element_bytes.
  cache::StateNeeds (*needs)(const checkpoint::Config& config);
  // Builds the graph from the root scope. Missing tensors are left to the audit.
  std::unique_ptr<Model> (*make)(const checkpoint::WeightScope& root, const checkpoint::Config& config);
};

}  // namespace godwit::models
