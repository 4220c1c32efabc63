// The flags of the prompt cache: docs/prompt-cache.md.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "decode/prompt_cache_options.h"

namespace godwit::cli {

struct CacheFlags {
  // Absent: the flag was not given. One that is given and empty, as from an unset variable of a script, is an error.
  std::optional<std::string> memory;  // of --prompt-cache
  std::optional<std::string> folder;  // of --cache-dir
  std::optional<std::string> disk;    // of --cache-disk

  // --prompt-cache, --cache-dir, --cache-disk, for verbs that answer several prompts. The object must outlive the
  // parse.
  void add_to(CLI::App& verb);
  // Without --prompt-cache: one prompt finds something on disk only.
  void add_disk_to(CLI::App& verb);
  // `use`: when no flag says anything. Error{invalid_argument} for empty values, sizes and combinations that make no sense.
  decode::PromptCacheOptions options(decode::PromptCacheOptions::Use use) const;
};

// "1000", "512M", "1.5G": bytes, or 1024-fold units K, M, G and T, upper or lower case, with or without B or iB behind
// them. Error{invalid_argument} naming `flag`.
std::uint64_t parse_bytes(std::string_view text, std::string_view flag);

}  // namespace godwit::cli
