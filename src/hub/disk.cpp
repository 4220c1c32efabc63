#include "hub/disk.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/error.h"

namespace godwit::hub {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void io_failure(const fs::path& path, std::string_view what, int code) {
  fail(ErrorCode::io, "hub", "{}: {}: {}", path.string(), what, std::strerror(code));
}

// Asks the nearest folder that exists: the cache may not have been made yet.
std::uint64_t free_bytes_of(fs::path folder) {
  struct statvfs info {};
  while (::statvfs(folder.empty() ? "." : folder.c_str(), &info) != 0) {
    if (errno != ENOENT || folder.empty() || folder == folder.parent_path())
      io_failure(folder, "cannot ask for its free space", errno);
    folder = folder.parent_path();
  }
  return static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
}

}  // namespace

DiskCalls real_disk() { return {.write = ::write, .symlink = ::symlink, .free_bytes = free_bytes_of}; }

File::File(const fs::path& path, unsigned mode)
    : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode)) {
  if (descriptor_ < 0) io_failure(path, "cannot open for writing", errno);
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void write_all(const DiskCalls& disk, int descriptor, std::span<const std::byte> bytes,
               const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t count = disk.write(descriptor, bytes.data(), bytes.size());
    if (count > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      const int code = count == 0 ? ENOSPC : errno;
      if (code == ENOSPC || code == EDQUOT)
        fail(ErrorCode::io, "hub",
             "{}: the disk is full; what has arrived is kept, the same command continues later",
             path.string());
      io_failure(path, "write failed", code);
    }
  }
}

void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

void make_folders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(ErrorCode::io, "hub", "{}: cannot make this folder: {}", folder.string(), error.message());
}

void replace_file(const DiskCalls& disk, const fs::path& path, std::string_view content) {
  make_folders(path.parent_path());
  const fs::path fresh = path.string() + fmt::format(".{}.new", ::getpid());
  try {
    File file(fresh);
    if (::ftruncate(file.descriptor(), 0) != 0) io_failure(fresh, "truncate failed", errno);
    write_all(disk, file.descriptor(), std::as_bytes(std::span(content)), fresh);
    if (::fsync(file.descriptor()) != 0) io_failure(fresh, "fsync failed", errno);
    if (::rename(fresh.c_str(), path.c_str()) != 0) io_failure(path, "rename failed", errno);
  } catch (...) {
    ::unlink(fresh.c_str());
    throw;
  }
  sync_folder(path.parent_path());
}

}  // namespace godwit::hub
