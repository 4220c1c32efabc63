#include "cache/kv_blocks.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace godwit::cache {
namespace {

constexpr int kPositions = static_cast<int>(kernels::kBlockPositions);

std::size_t blocks_for(int length) {
  return static_cast<std::size_t>((length + kPositions - 1) / kPositions);
}

}  // namespace

BlockTable::BlockTable(const LayerNeed& need, kernels::KvType type)
    : plane_bytes_(static_cast<std::size_t>(need.kv_heads) * static_cast<std::size_t>(need.key_dim) *
                   static_cast<std::size_t>(kPositions) *
                   static_cast<std::size_t>(kernels::kv_element_bytes(type))) {}

void BlockTable::make_room(int position, int end) {
  const std::size_t first = static_cast<std::size_t>(position / kPositions), wanted = blocks_for(end);
  std::vector<std::pair<std::size_t, std::shared_ptr<KvBlock>>> made;
  for (std::size_t b = first; b < wanted; ++b) {
    const bool is_there = b < blocks_.size() && blocks_[b];
    if (is_there && blocks_[b].use_count() == 1) continue;
    made.emplace_back(b, fresh());
    if (is_there) std::memcpy(made.back().second->data(), blocks_[b]->data(), block_bytes());
  }
  if (made.empty()) return;
  const std::size_t size = std::max(wanted, blocks_.size());
  blocks_.reserve(size);
  keys_.reserve(size);
  values_.reserve(size);
  blocks_.resize(size);
  keys_.resize(size);
  values_.resize(size);
  for (auto& [index, block] : made) put(index, std::move(block));
}

void BlockTable::put(std::size_t index, std::shared_ptr<KvBlock> block) noexcept {
  keys_[index] = block ? block->data() : nullptr;
  values_[index] = block ? block->data() + plane_bytes_ : nullptr;
  blocks_[index] = std::move(block);
}

void BlockTable::keep(int first, int length) noexcept {
  const std::size_t wanted = std::min(blocks_for(length), blocks_.size());
  blocks_.resize(wanted);
  keys_.resize(wanted);
  values_.resize(wanted);
  const int dead = first / kPositions;
  for (; first_block_ < dead; ++first_block_) put(static_cast<std::size_t>(first_block_), nullptr);
}

std::size_t BlockTable::bytes() const {
  const auto held = std::ranges::count_if(blocks_, [](const auto& block) { return block != nullptr; });
  return static_cast<std::size_t>(held) * block_bytes();
}

}  // namespace godwit::cache
