// What a Step is made of: its rows and their layers. Private to cache.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/row_impl.h"
#include "cache/step_layer.h"
#include "ops/delta_layer.h"
#include "ops/kv_layer.h"

namespace godwit::cache {

// Where a store keeps the memory of a Step that is over: a decode step is like the one before it.
struct StepShelf {
  std::unique_ptr<Step::Impl> spare;
};

struct Step::Impl {
  explicit Impl(const StoreChoices& choices);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // The rows have been checked; `reference` mode has one. `only`: StateStore::read. Whatever is thrown, end() follows.
  void begin(std::span<const RowSpan> planned, bool only);
  void publish();
  // Leaves rows that have not been published as they were.
  void end() noexcept;

  const StoreChoices& choices;
  std::shared_ptr<StepShelf> shelf;  // while the Step lasts
  bool reads_only = false;
  std::vector<RowSpan> spans;
  std::vector<Row::Impl*> rows;  // empty once published
  std::vector<int> offsets, tokens;
  int token_count = 0;
  // `native`, by layer: what a NativeLayer holds, and what a NativeRecurrent does.
  std::vector<ops::KvLayer> kv;
  std::vector<ops::DeltaLayer> delta;
  std::vector<std::unique_ptr<StepLayer>> layers;
  std::optional<mx::array> bound_offset;
  std::vector<LayerState*> stand_ins;  // by layer, once there is one

 private:
  bool is_kept(const LayerPlace& place) const;
  std::unique_ptr<StepLayer> make_layer(std::size_t index);
  void store_reference_group(std::size_t group);
};

}  // namespace godwit::cache
