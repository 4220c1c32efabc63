// Blocks of 64 positions and the pool they come from. Private to cache.
//
// A block holds the planes of all layers that share a table, for one row's positions [64 b, 64 b + 64). Rows,
// forks, donors and cache entries share it by reference. What lies below its fill mark is frozen for everyone but
// a sole owner: see BlockTable::make_room.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/kv_plane.h"

namespace godwit::cache {

inline constexpr int kPositions = static_cast<int>(kernels::kBlockPositions);

struct Block {
  std::byte* data() { return memory.data(); }
  const std::byte* data() const { return memory.data(); }
  std::size_t bytes() const { return memory.size(); }

  AlignedBuffer memory;
  int fill = 0;                   // positions that some row has written
  std::shared_ptr<Block> encoded;  // the same positions in the codec that the row will turn to; absent: not yet
};
using BlockRef = std::shared_ptr<Block>;

// Hands out blocks and takes their memory back when the last reference goes, on any thread.
class BlockPool : public std::enable_shared_from_this<BlockPool> {
 public:
  BlockRef take(std::size_t bytes);
  std::size_t resident_bytes() const;  // of blocks that are referenced
  std::size_t taken() const;           // blocks handed out so far
  // For tests: the count-th take from now on throws std::bad_alloc, once; 0: none does.
  void fail_at(int count);

 private:
  void put_back(AlignedBuffer memory) noexcept;

  mutable std::mutex mutex_;  // guards everything below
  std::unordered_map<std::size_t, std::vector<AlignedBuffer>> spare_;
  std::size_t resident_ = 0, spare_bytes_ = 0, taken_ = 0;
  int takes_to_failure_ = 0;
};

}  // namespace godwit::cache
