// The keys and values of a cross layer: written once for a row, then only read. Private to cache.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/mx.h"
#include "cache/block.h"

namespace godwit::cache {

// Immutable once published, so forks share it. Null: not yet written.
struct CrossPlanes {
  int positions = 0;
  // `reference`: evaluated, [1, kv_heads, positions, dim], as they were written.
  std::optional<mx::array> keys, values;
  // `native`: dense f32 planes in the store's blocks, laid out as those of one attention layer
  // (native_layout.h).
  std::vector<BlockRef> blocks;
  std::vector<void*> pointers;  // of the blocks

  std::size_t bytes() const {
    std::size_t total = keys ? keys->nbytes() + values->nbytes() : 0;
    for (const BlockRef& block : blocks) total += block->bytes();
    return total;
  }
};
using CrossMemory = std::shared_ptr<const CrossPlanes>;

}  // namespace godwit::cache
