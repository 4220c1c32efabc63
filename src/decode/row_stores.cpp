#include "decode/row_stores.h"

#include <algorithm>
#include <utility>

#include "base/free_memory.h"

namespace godwit::decode {
namespace {

constexpr int kLongest = 1 << 30;  // a context without a stated limit is longer than its blocks can be counted
constexpr std::size_t kBlock = 64;  // positions: a row grows by blocks

bool is_cut_anywhere(const cache::StateStore& store) {
  return std::ranges::all_of(store.needs(), [](const cache::LayerNeed& need) {
    return need.content != cache::Content::recurrent && need.window == cache::WindowKind::full;
  });
}

std::size_t blocks_of(int length) { return (static_cast<std::size_t>(length) + kBlock - 1) / kBlock; }

}  // namespace

std::size_t bytes_of(const cache::StateStore& store, int length) {
  return store.projected_bytes(static_cast<int>(blocks_of(std::min(length, kLongest)) * kBlock));
}

RowStore::RowStore(const cache::StateStore& store_of_rows, std::unique_ptr<cache::StateStore> held,
                   std::unique_ptr<PromptCache> prompts)
    : held_(std::move(held)),
      store(store_of_rows),
      cache(std::move(prompts)),
      is_found_anywhere(is_cut_anywhere(store) && !(cache && cache->has_disk())) {}

std::size_t RowStore::bytes_of(int length) {
  const std::size_t blocks = blocks_of(length);
  while (by_blocks_.size() <= blocks)
    by_blocks_.push_back(decode::bytes_of(store, static_cast<int>(by_blocks_.size() * kBlock)));
  return by_blocks_[blocks];
}

int longest_within(const cache::StateStore& store, std::size_t budget, int most) {
  int fits = 0, too_long = std::min(most, kLongest) + 1;
  while (too_long - fits > 1) {
    const int middle = fits + (too_long - fits) / 2;
    (bytes_of(store, middle) <= budget ? fits : too_long) = middle;
  }
  return fits;
}

MemoryShares share_memory(const models::ModelBundle& bundle, const EngineOptions& options) {
  const std::size_t memory =
      options.memory_bytes.value_or(static_cast<std::size_t>(free_memory() / 4 * 3));
  if (!PromptCache::is_wanted(bundle, options.cache)) return {0, memory};
  const std::size_t prompts = std::min(PromptCache::memory_for(options.cache), memory / 3);
  return {prompts, memory - prompts - RowStores::kMostOthers * (prompts / 8)};
}

RowStores::RowStores(const models::ModelBundle& bundle, const EngineOptions& options, const Log& log)
    : bundle_(bundle), cache_options_(options.cache), log_(log), shares_(share_memory(bundle, options)) {
  main_ = make(nullptr, *bundle.store, shares_.prompts);
}

std::shared_ptr<RowStore> RowStores::make(std::unique_ptr<cache::StateStore> own, const cache::StateStore& store,
                                          std::optional<std::size_t> memory) const {
  PromptCacheOptions options = cache_options_;
  options.memory_bytes = memory;
  std::unique_ptr<PromptCache> cache;
  if (memory && PromptCache::is_wanted(bundle_, cache_options_)) cache = PromptCache::open(bundle_, store, options, log_);
  return std::make_shared<RowStore>(store, std::move(own), std::move(cache));
}

std::shared_ptr<RowStore> RowStores::of(const std::optional<cache::KvPolicy>& kv) {
  if (!kv || *kv == main_->store.policy()) return main_;
  const auto known = std::ranges::find_if(others_, [&](const auto& each) { return each->store.policy() == *kv; });
  if (known != others_.end()) {
    std::rotate(known, known + 1, others_.end());
    return others_.back();
  }
  if (others_.size() >= kMostOthers) {
    const auto idle = std::ranges::find_if(others_, [](const auto& each) { return each.use_count() == 1; });
    if (idle != others_.end()) others_.erase(idle);
  }
  std::unique_ptr<cache::StateStore> own = bundle_.make_store(*kv);
  const cache::StateStore& store = *own;
  const bool is_crowded = others_.size() >= kMostOthers;
  return others_.emplace_back(
      make(std::move(own), store, is_crowded ? std::nullopt : std::optional(shares_.prompts / 8)));
}

std::size_t RowStores::resident_bytes() const {
  std::size_t total = main_->store.resident_bytes();
  for (const auto& other : others_) total += other->store.resident_bytes();
  return total;
}

std::optional<std::uint64_t> RowStores::forget_prompts(bool disk_too) {
  std::optional<std::uint64_t> bytes;
  const auto forget = [&](const RowStore& home) {
    if (!home.cache) return;
    bytes = bytes.value_or(0) + home.cache->stats().bytes;
    home.cache->forget(disk_too);
  };
  forget(*main_);
  for (const auto& other : others_) forget(*other);
  return bytes;
}

}  // namespace godwit::decode
