// The few operating system calls of a download that tests replace, and the small file helpers around them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

namespace godwit::hub {

// As ::write and ::symlink: negative with errno set when they fail. Empty members mean the real thing.
struct DiskCalls {
  std::function<ssize_t(int descriptor, const void* data, std::size_t size)> write;
  std::function<int(const char* target, const char* link)> symlink;
  std::function<std::uint64_t(const std::filesystem::path& folder)> free_bytes;
};

DiskCalls real_disk();

// A descriptor that closes itself.
class File {
 public:
  // Opens or creates for reading and writing, never following a link at the end of the path. Throws
  // Error{io}.
  explicit File(const std::filesystem::path& path, unsigned mode = 0666);
  ~File();
  File(File&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// All of it, or Error{io} that names `path` and, for a full disk, says so.
void write_all(const DiskCalls& disk, int descriptor, std::span<const std::byte> bytes,
               const std::filesystem::path& path);

void sync_folder(
    const std::filesystem::path& folder);  // makes a rename last; errors are ignored (not every system can)
void make_folders(const std::filesystem::path& folder);  // Error{io} naming the path

// Writes next to `path` and renames: readers see the old content or the new one. Error{io}.
void replace_file(const DiskCalls& disk, const std::filesystem::path& path, std::string_view content);

}  // namespace godwit::hub
