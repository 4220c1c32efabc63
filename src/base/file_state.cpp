#include "base/file_state.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace godwit {
namespace {

#if defined(__APPLE__)
const timespec& changed_at(const struct stat& info) { return info.st_ctimespec; }
const timespec& written_at(const struct stat& info) { return info.st_mtimespec; }
#else
const timespec& changed_at(const struct stat& info) { return info.st_ctim; }
const timespec& written_at(const struct stat& info) { return info.st_mtim; }
#endif

std::int64_t nanoseconds(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

}  // namespace

FileState file_state(const std::filesystem::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0)
    fail(ErrorCode::not_found, "file", "{}: {}", file.string(), std::strerror(errno));
  return {static_cast<std::uint64_t>(info.st_dev), static_cast<std::uint64_t>(info.st_ino),
          static_cast<std::uint64_t>(info.st_size), nanoseconds(written_at(info)), nanoseconds(changed_at(info))};
}

}  // namespace godwit
