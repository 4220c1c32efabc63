// What a row is made of. Private to cache.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cache/dense_planes.h"
#include "cache/ring_shadow.h"
#include "cache/state.h"

namespace godwit::cache {

// The choices that all rows of a store share; rows keep it alive.
struct StoreChoices {
  StateNeeds needs;
  KvPolicy policy;
  NumericMode mode = NumericMode::reference;
};

struct LayerMemory {
  DensePlanes planes;
  int first_kept = 0;              // oldest position still held; always 0 in full layers
  std::optional<RingShadow> ring;  // sliding layers only
};

struct Row::Impl {
  explicit Impl(std::shared_ptr<const StoreChoices> choices);

  std::shared_ptr<const StoreChoices> choices;
  std::vector<LayerMemory> layers;
  int length = 0;
  bool in_step = false;  // planned, not yet published or dropped
};

}  // namespace godwit::cache
