// Records, folders and logs for the tests of the cold tier.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "cache/cold_tier.h"

namespace godwit::cache {

namespace fs = std::filesystem;

// In memory where there is such a place: these tests make files by the thousand and wait for each.
inline fs::path test_root() {
  return ::access("/dev/shm", W_OK | X_OK) == 0 ? fs::path("/dev/shm") : fs::temp_directory_path();
}

// An empty place for one test of this process, removed at the end.
class TestFolder {
 public:
  explicit TestFolder(const std::string& name)
      : path_(test_root() / ("godwit_cold_" + name + "_" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~TestFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path cache() const { return path_ / "cache"; }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// splitmix64: bytes that depend on nothing but the seed.
inline std::vector<std::byte> test_bytes(std::uint64_t seed, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) {
    std::uint64_t z = (seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    byte = static_cast<std::byte>(z >> 56);
  }
  return bytes;
}

inline ColdKey test_key(std::uint64_t number) {
  ColdKey key;
  std::ranges::copy(test_bytes(1000 + number, key.bytes.size()), key.bytes.begin());
  return key;
}

inline const std::string kSignature = "model=abc;kv=f32";

inline ColdRecord test_record(std::uint64_t number, std::vector<std::size_t> sizes = {100},
                              const std::string& signature = kSignature) {
  ColdRecord record{.key = test_key(number),
                    .parent = test_key(number + 1'000'000),  // of no other record
                    .signature = signature,
                    .tokens = {static_cast<int>(number), -1, 2147483647},
                    .metadata = std::string("meta\0data", 9),
                    .parts = {}};
  for (const std::size_t size : sizes) {
    auto bytes =
        std::make_shared<std::vector<std::byte>>(test_bytes(number * 31 + record.parts.size(), size));
    record.parts.push_back({.bytes = *bytes, .owner = bytes});
  }
  return record;
}

// Whether the tier answers with exactly this record.
inline bool holds(ColdTier& tier, const ColdRecord& record) {
  const auto head = tier.head(record.key, record.signature);
  if (!head || head->parent != record.parent || head->tokens != record.tokens ||
      head->metadata != record.metadata || head->part_bytes.size() != record.parts.size())
    return false;
  std::vector<std::vector<std::byte>> buffers;
  std::vector<std::span<std::byte>> into;
  for (const std::uint64_t bytes : head->part_bytes) buffers.emplace_back(bytes);
  for (auto& buffer : buffers) into.emplace_back(buffer);
  if (!tier.read(record.key, record.signature, into)) return false;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (!std::ranges::equal(buffers[i], record.parts[i].bytes)) return false;
  return true;
}

class TestLog {
 public:
  Log log() {
    return Log([this](LogLevel level, std::string_view text) {
      const std::lock_guard lock(mutex_);
      if (level >= LogLevel::warning) warnings_.emplace_back(text);
    });
  }
  std::size_t warnings() {
    const std::lock_guard lock(mutex_);
    return warnings_.size();
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    std::string all;
    for (const auto& warning : warnings_) all += warning + "\n";
    return all;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> warnings_;
};

inline ColdOptions test_options(const fs::path& folder, std::uint64_t cap = 1 << 30) {
  return {.folder = folder, .cap_bytes = cap, .queue_bytes = 1 << 30, .hooks = {}};
}

// A cap that leaves `bytes` for records, a few of them: the cap counts the index, too.
inline std::uint64_t cap_for(std::uint64_t bytes) {
  static const std::uint64_t index = [] {
    const TestFolder folder("cap");
    ColdTier(test_options(folder.cache()), {}).flush();
    return fs::file_size(folder.cache() / "index.v1.sqlite");
  }();
  return index + bytes;
}

inline fs::path record_path(const fs::path& folder, const ColdKey& key) {
  return folder / key.hex().substr(0, 2) / (key.hex() + ".kv");
}

inline std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_bytes(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// All files below a folder but the index's.
inline std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& item : fs::recursive_directory_iterator(folder))
    if (!item.is_directory() && !item.path().filename().string().starts_with("index."))
      files.push_back(item.path());
  return files;
}

// The bytes of the file that a record becomes.
inline std::string file_of(const ColdRecord& record) {
  const TestFolder folder("bytes");
  {
    ColdTier tier(test_options(folder.cache()), {});
    tier.put(record);
  }
  return bytes_of(record_path(folder.cache(), record.key));
}

}  // namespace godwit::cache
