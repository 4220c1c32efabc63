// The keys and values of a cross layer: written once for a row, then only read. Private to cache.
#pragma once

#include <memory>

#include "base/mx.h"

namespace godwit::cache {

// Evaluated, [1, kv_heads, positions, dim]; immutable, so forks share it. Null: not yet written.
struct CrossPlanes {
  mx::array keys;
  mx::array values;

  std::size_t bytes() const { return keys.nbytes() + values.nbytes(); }
};
using CrossMemory = std::shared_ptr<const CrossPlanes>;

}  // namespace godwit::cache
