// The prompt cache of one opened model, as the engine uses it: what to look for, what to keep, and that a fault of the
// cache never is one of the request. docs/prompt-cache.md. On the engine thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/log.h"
#include "cache/prefix_cache.h"
#include "decode/prompt_cache_options.h"
#include "models/model_bundle.h"

namespace godwit::decode {

class PromptCache {
 public:
  // Whether `options` ask for one over this model, and the memory it may take.
  static bool is_wanted(const models::ModelBundle& bundle, const PromptCacheOptions& options);
  static std::size_t memory_for(const PromptCacheOptions& options);

  // Null when `options` ask for none. Throws what cannot be served: a folder that cannot be made, weights that cannot
  // be read. `bundle` and `store`, one of its stores, must outlive it.
  static std::unique_ptr<PromptCache> open(const models::ModelBundle& bundle, const cache::StateStore& store,
                                           const PromptCacheOptions& options, const Log& log);
  static std::unique_ptr<PromptCache> open(const models::ModelBundle& bundle, const PromptCacheOptions& options,
                                           const Log& log) {
    return open(bundle, *bundle.store, options, log);
  }

  // A row that holds the longest known prefix of `prompt` and leaves at least its last token to compute. In
  // `reference` only one that the chunks of this prompt lead to. What was kept under another `salt` is never found.
  std::optional<cache::Row> find(std::span<const int> prompt, const std::string& salt = "");
  // `row` has just stored a chunk of `prompt`.
  void keep_prompt(const cache::Row& row, std::span<const int> prompt, const std::string& salt = "");
  // `row` holds a prompt and some of its answer. In `reference` no other prompt is computed so: nothing is kept.
  void keep_answer(const cache::Row& row, std::span<const int> tokens, const std::string& salt = "");

  void forget(bool disk_too) { prefixes_.clear(disk_too); }

  // What was kept is found on disk by all of its tokens.
  bool has_disk() const { return disk_ != nullptr; }
  cache::PrefixCacheStats stats() const { return prefixes_.stats(); }

 private:
  PromptCache(const models::ModelBundle& bundle, const cache::StateStore& store, const PromptCacheOptions& options,
              const Log& log);
  std::optional<cache::Row> find_planned(std::span<const int> prompt, const std::string& salt);
  template <typename Work>
  void guarded(const char* what, Work&& work) const;

  Log log_;
  bool is_native_;
  std::size_t memory_cap_;
  std::unique_ptr<cache::ColdTier> disk_;  // null: none
  cache::PrefixCache prefixes_;
};

}  // namespace godwit::decode
