#include "cache/block_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace godwit::cache {
namespace {

// Where the room [position, end) begins and ends inside block b.
int slot_of(int position, std::size_t block) {
  return std::clamp(position - static_cast<int>(block) * kPositions, 0, kPositions);
}

bool is_writable(const BlockRef& block, int slot) { return block.use_count() == 1 || block->fill == slot; }

}  // namespace

void BlockTable::make_room(BlockPool& pool, std::size_t bytes, int position, int end) {
  const std::size_t first = static_cast<std::size_t>(position / kPositions), wanted = blocks_for(end);
  std::vector<std::pair<std::size_t, BlockRef>> made;
  for (std::size_t b = first; b < wanted; ++b) {
    const bool is_there = b < blocks_.size() && blocks_[b];
    if (is_there && is_writable(blocks_[b], slot_of(position, b))) continue;
    made.emplace_back(b, pool.take(bytes));
    if (is_there) std::memcpy(made.back().second->data(), blocks_[b]->data(), bytes);
  }
  blocks_.reserve(std::max(wanted, blocks_.size()));
  pointers_.reserve(blocks_.capacity());
  // Nothing fails from here on.
  resize(std::max(wanted, blocks_.size()));
  for (auto& [index, block] : made) put(index, std::move(block));
  for (std::size_t b = first; b < wanted; ++b) {
    blocks_[b]->encoded.reset();
    blocks_[b]->fill = slot_of(end, b);
  }
}

void BlockTable::give_up(int position, int end) noexcept {
  const std::size_t wanted = std::min(blocks_for(end), blocks_.size());
  for (std::size_t b = static_cast<std::size_t>(position / kPositions); b < wanted; ++b)
    if (blocks_[b] && blocks_[b]->fill == slot_of(end, b)) blocks_[b]->fill = slot_of(position, b);
}

void BlockTable::resize(std::size_t size) noexcept {
  blocks_.resize(size);
  pointers_.resize(size);
}

void BlockTable::put(std::size_t index, BlockRef block) noexcept {
  pointers_[index] = block ? block->data() : nullptr;
  blocks_[index] = std::move(block);
}

void BlockTable::keep(int first, int length) noexcept {
  resize(std::min(blocks_for(length), blocks_.size()));
  const auto dead = std::min(static_cast<std::size_t>(first / kPositions), blocks_.size());
  for (; first_block_ < dead; ++first_block_) put(first_block_, nullptr);
  if (blocks_.empty()) first_block_ = 0;
}

void BlockTable::set(std::size_t index, BlockRef block) {
  const std::size_t size = std::max(index + 1, blocks_.size());
  blocks_.reserve(size);
  pointers_.reserve(size);
  if (index > blocks_.size()) first_block_ = index;
  resize(size);
  put(index, std::move(block));
}

std::size_t BlockTable::bytes() const {
  std::size_t total = 0;
  for (const BlockRef& block : blocks_)
    if (block) total += block->bytes() + (block->encoded ? block->encoded->bytes() : 0);
  return total;
}

}  // namespace godwit::cache
