#include "cache/held_positions.h"

#include <cstring>
#include <vector>

#include "base/error.h"

namespace godwit::cache {
namespace {

// `rows` rows that follow one another from byte `offset` on, each with the block's 64 positions.
struct PlaneRows {
  std::size_t offset, rows;
  std::size_t position_bytes;  // of one position in one row
};

// Dense keys are [heads, dim, 64], all else [heads, 64, bytes] (kernels/kv_plane.h).
PlaneRows rows_of(const kernels::KvPlane& plane, bool are_keys) {
  const bool is_dense = plane.bits == 0;
  const auto heads = static_cast<std::size_t>(plane.heads);
  const auto record = static_cast<std::size_t>(kernels::record_bytes(plane));
  const auto dim = static_cast<std::size_t>(plane.dim);
  const auto offset = static_cast<std::size_t>(plane.offset);
  if (is_dense && are_keys) return {offset, heads * dim, record / dim};
  return {offset, heads, record};
}

std::vector<PlaneRows> planes_of(const LayerGroup& group, bool encoded, bool is_native) {
  std::vector<PlaneRows> planes;
  if (is_native) {
    for (const NativePlanes& slot : group.native(encoded).slots) {
      planes.push_back(rows_of(slot.keys, true));
      if (!kernels::keys_as_values(slot.keys, slot.values)) planes.push_back(rows_of(slot.values, false));
    }
    return planes;
  }
  for (const SlotPlaces& slot : group.reference(encoded).value().slots)
    for (const auto& plane : slot)
      for (const ComponentPlace& place : plane)
        planes.push_back({place.offset, static_cast<std::size_t>(place.heads), place.token_bytes()});
  return planes;
}

}  // namespace

BlockRef held_positions(const BlockRef& block, int positions, const LayerGroup& group, bool encoded, bool is_native,
                        BlockPool& pool) {
  const std::vector<PlaneRows> planes = planes_of(group, encoded, is_native);
  std::size_t covered = 0;
  for (const PlaneRows& plane : planes) covered += plane.rows * kPositions * plane.position_bytes;
  GODWIT_CHECK(covered <= block->bytes(), "planes of {} bytes in a block of {}", covered, block->bytes());
  if (positions == kPositions && covered == block->bytes()) return block;
  BlockRef held = pool.take(block->bytes());
  std::memset(held->data(), 0, held->bytes());
  for (const PlaneRows& plane : planes) {
    const std::size_t stride = kPositions * plane.position_bytes;
    for (std::size_t row = 0; row < plane.rows; ++row) {
      const std::size_t at = plane.offset + row * stride;
      std::memcpy(held->data() + at, block->data() + at, static_cast<std::size_t>(positions) * plane.position_bytes);
    }
  }
  return held;
}

}  // namespace godwit::cache
