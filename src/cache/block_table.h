// The ordered blocks of one row over the layers of one group. Private to cache.
#pragma once

#include <vector>

#include "cache/block.h"

namespace godwit::cache {

class BlockTable {
 public:
  // Blocks of `bytes` for positions up to `end`, writable from `position`, the row's length, on. A block is
  // written in place by its sole owner, or by a row whose tokens end at its fill mark; any other is copied first.
  // Nothing that a row of `position` tokens can see changes, and nothing at all if it throws.
  void make_room(BlockPool& pool, std::size_t bytes, int position, int end);
  // Takes back the room made for [position, end), which nobody has published.
  void give_up(int position, int end) noexcept;
  // Forgets the blocks that hold only positions from `length` on, and those that hold only positions before
  // `first`.
  void keep(int first, int length) noexcept;
  // Puts a block at `index`, in ascending order: entries left out count as forgotten, with all before them. For rows
  // made of stored blocks.
  void set(std::size_t index, BlockRef block);

  // The oldest position from which on every block is there; 0 in an empty table.
  int first_position() const { return static_cast<int>(first_block_) * kPositions; }
  // Entry b: positions [64 b, 64 b + 64); null where forgotten.
  const std::vector<BlockRef>& blocks() const { return blocks_; }
  void* const* pointers() const { return pointers_.data(); }
  std::size_t bytes() const;

 private:
  void resize(std::size_t size) noexcept;
  void put(std::size_t index, BlockRef block) noexcept;

  std::vector<BlockRef> blocks_;
  std::vector<void*> pointers_;
  std::size_t first_block_ = 0;  // those before it are forgotten
};

// Blocks that `length` positions fill or begin.
constexpr std::size_t blocks_for(int length) {
  return static_cast<std::size_t>((length + kPositions - 1) / kPositions);
}

}  // namespace godwit::cache
