#include "hub/blob_lock.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/error.h"
#include "hub/retry.h"

namespace godwit::hub {
namespace {

// Group-writable, as huggingface_hub makes it, so that users who share a cache can wait for one another.
constexpr unsigned kLockMode = 0664;

// Older tools delete the file when they let go; then our lock is on a file nobody else can find.
bool is_still_named(int descriptor, const std::filesystem::path& path) {
  struct stat held {
  }, named{};
  return ::fstat(descriptor, &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

File lock_file(const std::filesystem::path& path, const StopCheck& stop) {
  make_folders(path.parent_path());
  for (;;) {
    File file(path, kLockMode);
    while (::flock(file.descriptor(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR)
        fail(ErrorCode::io, "hub", "{}: cannot lock: {}", path.string(), std::strerror(errno));
      interruptible_sleep(std::chrono::milliseconds(100), stop);
    }
    if (is_still_named(file.descriptor(), path)) return file;
  }
}

}  // namespace

BlobLock::BlobLock(const std::filesystem::path& path, const StopCheck& stop) : file_(lock_file(path, stop)) {}

}  // namespace godwit::hub
