// Blocks of 64 positions for `native` mode: a layer of a row is a table of them. Private to cache.
//
// A block may belong to several rows (fork). Only its sole owner writes into it; make_room() copies one that
// is shared before this step's tokens go there. Slots past a row's length are dead, so an unpublished step
// leaves no trace.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/aligned_buffer.h"
#include "cache/layer_need.h"
#include "kernels/attention.h"

namespace godwit::cache {

// Keys [kv_heads, head_dim, 64], then values [kv_heads, 64, head_dim].
using KvBlock = AlignedBuffer;

class BlockTable {
 public:
  BlockTable(const LayerNeed& need, kernels::KvType type);

  // Blocks for positions up to `end`, those from `position` on owned by this table alone. Nothing that a row
  // of `position` tokens can see changes, and nothing at all if it throws.
  void make_room(int position, int end);
  // Forgets the blocks that hold only positions from `length` on, and those that hold only positions before
  // `first`.
  void keep(int first, int length) noexcept;

  // The oldest position whose block is there; 0 in an empty table.
  int first_position() const { return first_block_ * static_cast<int>(kernels::kBlockPositions); }

  void* const* keys() const { return keys_.data(); }
  void* const* values() const { return values_.data(); }
  std::size_t bytes() const;
  std::size_t block_bytes() const { return 2 * plane_bytes_; }

 private:
  std::shared_ptr<KvBlock> fresh() const { return std::make_shared<KvBlock>(block_bytes()); }
  void put(std::size_t index, std::shared_ptr<KvBlock> block) noexcept;

  std::size_t plane_bytes_;                       // of the keys, and of the values
  std::vector<std::shared_ptr<KvBlock>> blocks_;  // entry b: positions [64 b, 64 b + 64); null: forgotten
  std::vector<void*> keys_, values_;
  int first_block_ = 0;  // those before it are forgotten
};

}  // namespace godwit::cache
