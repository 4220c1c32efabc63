// What a row is made of. Private to cache.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cache/dense_planes.h"
#include "cache/kv_blocks.h"
#include "cache/ring_shadow.h"
#include "cache/state.h"

namespace godwit::cache {

// The choices that all rows of a store share; rows keep it alive.
struct StoreChoices {
  StateNeeds needs;
  KvPolicy policy;
  NumericMode mode = NumericMode::reference;

  bool is_native() const { return mode == NumericMode::native; }
};

// The element type of native blocks; `model` is f32, in which native activations are.
kernels::KvType native_type(const KvPolicy& policy);

struct LayerMemory {
  DensePlanes planes;
  int first_kept = 0;              // oldest position still held; always 0 in full layers
  std::optional<RingShadow> ring;  // sliding layers only
};

struct Row::Impl {
  explicit Impl(std::shared_ptr<const StoreChoices> choices);

  std::shared_ptr<const StoreChoices> choices;
  std::vector<LayerMemory> layers;  // `reference`
  std::vector<BlockTable> tables;   // `native`: a table per layer
  int length = 0;
  int first_kept(std::size_t layer) const;  // oldest position still held
  // Drops the blocks that neither the row's tokens nor its next ones need.
  void trim() noexcept;
  bool in_step = false;  // planned, not yet published or dropped
};

}  // namespace godwit::cache
