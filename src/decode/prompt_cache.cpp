#include "decode/prompt_cache.h"

#include <algorithm>
#include <utility>

#include "base/free_memory.h"
#include "decode/model_identity.h"
#include "decode/row_runner.h"

namespace godwit::decode {
namespace {

constexpr std::size_t kMostByDefault = std::size_t{1} << 30;

// The chunk plan of `reference` that leads to `end`: whole chunks, and what is left of a prompt behind them. Whole chunks
// are the same for every prompt that has them. A rest is one forward, whose bits depend on its length, so a prompt that
// ends elsewhere has another plan all along its rest.
std::string plan_to(int end) {
  return end % kReferenceChunk == 0 ? "whole chunks" : fmt::format("whole chunks and a rest to {}", end);
}

// Entries of different spaces know nothing of each other. A salt stands behind a sign that no plan begins with.
std::string space_of(const std::string& salt, const std::string& plan = "") {
  return salt.empty() ? plan : fmt::format("salt {}:{}{}", salt.size(), salt, plan);
}

std::unique_ptr<cache::ColdTier> open_disk(const PromptCacheOptions& options, const Log& log) {
  if (options.folder.empty()) return nullptr;
  return std::make_unique<cache::ColdTier>(
      cache::ColdOptions{.folder = options.folder, .cap_bytes = options.disk_bytes, .hooks = {}}, log);
}

// A cache that ends with its model needs no name for it. Hashes are remembered where packed weights are, so that a start
// with both reads the weight files once.
std::string identity_of(const models::ModelBundle& bundle, const PromptCacheOptions& options, const Log& log) {
  if (options.folder.empty()) return "";
  return model_identity(bundle, bundle.options.packed_folder.value_or(options.folder), log);
}

}  // namespace

bool PromptCache::is_wanted(const models::ModelBundle& bundle, const PromptCacheOptions& options) {
  using Use = PromptCacheOptions::Use;
  if (options.use == Use::off || options.memory_bytes == std::size_t{0}) return false;
  return options.use == Use::on || bundle.mode == NumericMode::native;
}

std::size_t PromptCache::memory_for(const PromptCacheOptions& options) {
  if (options.memory_bytes) return *options.memory_bytes;
  return static_cast<std::size_t>(std::min<std::uint64_t>(kMostByDefault, free_memory() / 4));
}

std::unique_ptr<PromptCache> PromptCache::open(const models::ModelBundle& bundle, const cache::StateStore& store,
                                               const PromptCacheOptions& options, const Log& log) {
  if (!is_wanted(bundle, options)) return nullptr;
  return std::unique_ptr<PromptCache>(new PromptCache(bundle, store, options, log));
}

PromptCache::PromptCache(const models::ModelBundle& bundle, const cache::StateStore& store,
                         const PromptCacheOptions& options, const Log& log)
    : log_(log),
      is_native_(bundle.mode == NumericMode::native),
      memory_cap_(memory_for(options)),
      disk_(open_disk(options, log)),
      prefixes_(store,
                {.cap_bytes = memory_cap_, .identity = identity_of(bundle, options, log)},
                disk_.get()) {
  const std::string disk = options.folder.empty() ? "" : fmt::format(", and {} on disk", options.folder.string());
  log.info("prompt cache: up to {} MiB in memory{}", memory_cap_ >> 20, disk);
}

// What goes wrong here costs time and changes no answer.
template <typename Work>
void PromptCache::guarded(const char* what, Work&& work) const {
  try {
    work();
  } catch (const std::exception& error) {
    log_.warning("prompt cache: {}: {}", what, error.what());
  }
}

std::optional<cache::Row> PromptCache::find(std::span<const int> prompt, const std::string& salt) {
  std::optional<cache::Row> found;
  guarded("looking up failed",
          [&] { found = is_native_ ? prefixes_.find(prompt, space_of(salt)) : find_planned(prompt, salt); });
  return found;
}

std::optional<cache::Row> PromptCache::find_planned(std::span<const int> prompt, const std::string& salt) {
  const int end = static_cast<int>(prompt.size()) - 1;
  if (end % kReferenceChunk != 0) {
    std::optional<cache::Row> row = prefixes_.find(prompt, space_of(salt, plan_to(end)));
    if (row && row->position() == end) return row;
  }
  std::optional<cache::Row> row = prefixes_.find(prompt, space_of(salt, plan_to(0)));
  if (!row) return std::nullopt;
  const int whole = row->position() - row->position() % kReferenceChunk;
  if (whole == 0 || whole < row->minimum_reusable_length()) return std::nullopt;
  row->truncate(whole);
  return row;
}

void PromptCache::keep_prompt(const cache::Row& row, std::span<const int> prompt, const std::string& salt) {
  const auto held = static_cast<std::size_t>(row.position());
  guarded("keeping a prompt failed", [&] {
    prefixes_.insert(row, prompt.first(held), space_of(salt, is_native_ ? "" : plan_to(row.position())));
  });
}

void PromptCache::keep_answer(const cache::Row& row, std::span<const int> tokens, const std::string& salt) {
  if (!is_native_) return;
  guarded("keeping an answer failed", [&] { prefixes_.insert(row, tokens, space_of(salt)); });
}

}  // namespace godwit::decode
