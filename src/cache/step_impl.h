// What a Step is made of: its rows and their layers. Private to cache.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/row_impl.h"
#include "cache/step_layer.h"

namespace godwit::cache {

struct Step::Impl {
  // The rows have been checked; `reference` mode has one. `reads_only`: StateStore::read.
  Impl(const StoreChoices& choices, std::span<const RowSpan> planned, bool reads_only);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void publish();

  const StoreChoices& choices;
  bool reads_only;
  std::vector<RowSpan> spans;
  std::vector<Row::Impl*> rows;  // empty once published
  std::vector<int> offsets, tokens;
  int token_count = 0;
  std::vector<std::unique_ptr<StepLayer>> layers;
  std::optional<mx::array> bound_offset;
  std::vector<LayerState*> stand_ins;  // by layer, once there is one

 private:
  std::unique_ptr<StepLayer> make_layer(LayerPlace place) const;
  void store_reference_group(std::size_t group);
};

}  // namespace godwit::cache
