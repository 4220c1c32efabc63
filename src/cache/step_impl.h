// What a Step is made of: one row and its layers, as `reference` mode runs it. Private to cache.
#pragma once

#include <vector>

#include "cache/dense_layer_state.h"

namespace godwit::cache {

struct Step::Impl {
  Impl(Row::Impl& planned, int span);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  NumericMode mode = NumericMode::reference;
  Row::Impl* row;  // null once published
  int offset;
  int tokens;
  std::vector<DenseLayerState> layers;
};

}  // namespace godwit::cache
