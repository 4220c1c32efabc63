// One record on disk: read with checks at every step, or written beside its name and renamed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "cache/cold_record.h"

namespace godwit::cache {

// The steps of a write, in order. A process may die between any two of them.
enum class ColdStep {
  temp_made,
  front_written,
  parts_written,
  file_synced,
  renamed,
  committed,
  folder_synced
};

// Empty members mean the real thing; tests replace them.
struct ColdHooks {
  std::function<void(ColdStep)> after = {};                                  // on the writer's thread
  std::function<ssize_t(int fd, const void* data, std::size_t)> write = {};  // as ::write
  std::function<std::chrono::steady_clock::time_point()> now = {};
};

class ColdDescriptor {
 public:
  ColdDescriptor() = default;
  explicit ColdDescriptor(int value) : value_(value) {}
  ColdDescriptor(ColdDescriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  ColdDescriptor& operator=(ColdDescriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~ColdDescriptor();
  int get() const { return value_; }

 private:
  int value_ = -1;
};

// A file opened for reading.
class ColdFile {
 public:
  // Nothing for a missing file. Throws Error{unsupported} for what is no regular file and Error{io}.
  static std::optional<ColdFile> open(const std::filesystem::path& path);

  // Reads and checks everything in front of the parts; errors as parse_front(), and Error{io}.
  const ColdHeader& load();
  const ColdHeader& header() const { return header_; }

  // Fills `into`, of the size in the header, with part `index`. Error{corrupt_file, io}; then `into` holds
  // anything.
  void read_part(std::size_t index, std::span<std::byte> into) const;

  // Whether the file starts as one of ours does (is_cold_start); false when it cannot be read.
  bool is_ours() const;
  // Removes `path` if it still names this file. A file renamed over it meanwhile stays.
  void remove_from(const std::filesystem::path& path) const;

  std::uint64_t bytes() const { return bytes_; }
  std::int64_t modified_ns() const { return modified_ns_; }

 private:
  void read_at(std::uint64_t offset, std::span<std::byte> into) const;

  ColdDescriptor file_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::uint64_t bytes_ = 0;
  std::int64_t modified_ns_ = 0;
  ColdHeader header_;
};

// A record under a temporary name. It is removed again unless publish() gave it its own.
class ColdTemp {
 public:
  // Makes, writes and syncs it in the folder of `target`. Throws Error{io}.
  ColdTemp(const std::filesystem::path& target, const ColdRecord& record, const ColdHooks& hooks);
  ~ColdTemp();
  ColdTemp(const ColdTemp&) = delete;
  ColdTemp& operator=(const ColdTemp&) = delete;

  void publish();  // rename to the target; Error{io}

 private:
  void make();
  void write(std::span<const std::byte> bytes);

  std::filesystem::path target_, path_;
  const ColdHooks& hooks_;
  ColdDescriptor file_;
};

// Removes a temporary file whose writer is gone: nobody holds its lock.
void reap_temp(const std::filesystem::path& path);
// Whether this is the name of a temporary file of ColdTemp.
bool is_temp_name(std::string_view name);

}  // namespace godwit::cache
