// What a state store is made of. Private to cache.
#pragma once

#include <memory>

#include "cache/store_choices.h"

namespace godwit::cache {

struct StateStore::Impl {
  std::shared_ptr<const StoreChoices> choices;
};

}  // namespace godwit::cache
