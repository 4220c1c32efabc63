// The state stores of one opened model, each with its prompt cache: the engine's own, and one for each other KV policy
// that requests ask for, made on demand and dropped when others need its place. On the engine thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/log.h"
#include "decode/engine_options.h"
#include "decode/prompt_cache.h"
#include "models/model_bundle.h"

namespace godwit::decode {

// An upper bound of what a row of `length` tokens holds, by whole blocks.
std::size_t bytes_of(const cache::StateStore& store, int length);

class RowStore {
 public:
  // `held` is the store when it is no other's.
  RowStore(const cache::StateStore& store_of_rows, std::unique_ptr<cache::StateStore> held,
           std::unique_ptr<PromptCache> prompts);

  // The same as the function's, worked out once for each number of blocks.
  std::size_t bytes_of(int length);

 private:
  std::unique_ptr<cache::StateStore> held_;
  std::vector<std::size_t> by_blocks_;

 public:
  const cache::StateStore& store;
  const std::unique_ptr<PromptCache> cache;  // null: none
  // Another prompt can go on from any token of a kept row. Else it is the places where rows were kept, or shortly behind.
  const bool is_found_anywhere;
};

// The longest row that fits `budget` bytes, at most `most` tokens.
int longest_within(const cache::StateStore& store, std::size_t budget, int most);

// How the engine's memory is shared out.
struct MemoryShares {
  std::size_t prompts = 0;  // of the prompt cache of the engine's own store; the others have an eighth of it each
  std::size_t rows = 0;     // what is left: for the rows themselves
};
MemoryShares share_memory(const models::ModelBundle& bundle, const EngineOptions& options);

class RowStores {
 public:
  // `bundle` must outlive it. Throws what PromptCache::open throws.
  RowStores(const models::ModelBundle& bundle, const EngineOptions& options, const Log& log);

  static constexpr std::size_t kMostOthers = 4;  // with a prompt cache; one past them, while all are in use, has none

  // The store of a policy; the engine's when there is none. Whoever holds it keeps it. Throws what
  // ModelBundle::make_store throws.
  std::shared_ptr<RowStore> of(const std::optional<cache::KvPolicy>& kv);
  RowStore& main() { return *main_; }
  std::size_t resident_bytes() const;
  // Empties the prompt caches, and returns the bytes of memory that they held; absent: there is none.
  std::optional<std::uint64_t> forget_prompts(bool disk_too);
  std::size_t row_budget() const { return shares_.rows; }

 private:
  std::shared_ptr<RowStore> make(std::unique_ptr<cache::StateStore> own, const cache::StateStore& store,
                                 std::optional<std::size_t> memory) const;

  const models::ModelBundle& bundle_;
  PromptCacheOptions cache_options_;
  Log log_;
  MemoryShares shares_;
  std::shared_ptr<RowStore> main_;
  std::vector<std::shared_ptr<RowStore>> others_;  // the least recently asked for first
};

}  // namespace godwit::decode
