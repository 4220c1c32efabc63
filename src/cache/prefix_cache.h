// Finds again what rows have computed: the prompt cache (docs/prompt-cache.md). On the engine thread.
//
// Entries are prefixes in a tree of blocks, capped by bytes, the least recently used leaf first. A hit is a new row
// that shares blocks with the entry and with every other hit; the entry stays. With a cold tier every entry is also
// written to disk, and prefixes that only the disk knows are read back.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cache/cold_tier.h"
#include "cache/state.h"

namespace godwit::cache {

struct PrefixCacheOptions {
  std::size_t cap_bytes = std::size_t{1} << 30;  // blocks and snapshots; 0 keeps nothing
  std::size_t snapshot_bytes = 0;                // of recurrent states within that; 0: a quarter
  // All that can change a cached byte and is not in the store's signature: weights, rotary overrides, activation form.
  std::string identity;
};

struct PrefixCacheStats {
  std::size_t bytes = 0, snapshot_bytes = 0, nodes = 0;
  std::uint64_t hits = 0, misses = 0, hit_tokens = 0, evicted = 0, cold_hits = 0;
};

class PrefixCache {
 public:
  // `store` and `cold` (may be null) must outlive the cache.
  PrefixCache(const StateStore& store, PrefixCacheOptions options, ColdTier* cold = nullptr);
  ~PrefixCache();

  // A row that holds the longest prefix of `tokens` which can be gone on from exactly and leaves at least one token to
  // compute; absent when there is none. `space` separates what tokens do not say: adapters in order, media, and in
  // `reference` mode the chunk plan.
  std::optional<Row> find(std::span<const int> tokens, const std::string& space = "");
  // Remembers a row that holds exactly `tokens`, and can be cut to any prefix that its blocks still cover. Not inside a
  // Step or a round.
  void insert(const Row& row, std::span<const int> tokens, const std::string& space = "");
  void clear(bool disk_too = false);  // the disk behind what is being written there; not waited for
  PrefixCacheStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::cache
