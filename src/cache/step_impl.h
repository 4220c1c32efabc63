// What a Step is made of: its rows and their layers. Private to cache.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cache/row_impl.h"
#include "cache/step_layer.h"

namespace godwit::cache {

struct Step::Impl {
  // The rows have been checked; `reference` mode has one.
  Impl(const StoreChoices& choices, std::span<const RowSpan> spans);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  NumericMode mode;
  std::vector<Row::Impl*> rows;  // empty once published
  std::vector<int> offsets, tokens;
  int token_count = 0;
  std::vector<std::unique_ptr<StepLayer>> layers;

 private:
  void add_native_layers(const StoreChoices& choices);
};

}  // namespace godwit::cache
