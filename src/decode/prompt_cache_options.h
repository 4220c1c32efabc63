// Whether an engine has a prompt cache, and how large. docs/prompt-cache.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace godwit::decode {

struct PromptCacheOptions {
  // `reference` finds only what the same chunk plan left, so it has none unless asked.
  enum class Use { off, in_native, on };
  Use use = Use::off;
  std::optional<std::size_t> memory_bytes;  // absent: 1 GiB, or a quarter of the free memory if that is less
  std::filesystem::path folder;             // of the cold tier; empty: none
  std::uint64_t disk_bytes = std::uint64_t{32} << 30;
};

}  // namespace godwit::decode
