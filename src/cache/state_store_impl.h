// What a state store is made of. Private to cache.
#pragma once

#include <memory>

#include "cache/step_impl.h"
#include "cache/store_choices.h"

namespace godwit::cache {

struct StateStore::Impl {
  Step begin(std::span<const RowSpan> spans, bool reads_only) const;

  std::shared_ptr<const StoreChoices> choices;
  std::shared_ptr<StepShelf> shelf = std::make_shared<StepShelf>();
};

}  // namespace godwit::cache
