#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace godwit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRandom = ".XXXXXX";
constexpr int kMaxTries = 100;

[[noreturn]] void fail_with(const std::string& path, std::string_view what) {
  fail(ErrorCode::io, "file", "{}: cannot {}: {}", path, what, std::strerror(errno));
}

bool is_abandoned(int descriptor) {
  struct stat info {};
  return ::fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) && ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

// The lock tells others that the writer lives. Somebody who reaps may be quicker than it; then the name is gone and another
// is made.
AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  for (int tries = 0; tries < kMaxTries; ++tries) {
    temporary_ = path_.string() + std::string(kRandom);
    descriptor_ = ::mkstemp(temporary_.data());
    if (descriptor_ < 0) fail_with(path_.string(), "make a file beside it");
    struct stat info {};
    while (::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
    }
    if (::fstat(descriptor_, &info) == 0 && info.st_nlink > 0) return;
    ::close(std::exchange(descriptor_, -1));
  }
  fail(ErrorCode::io, "file", "{}: temporary files vanish", path_.string());
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail_with(temporary_, "write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

// On disk before it has its name: after a power cut a file of the right length would else hold zeros.
void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail_with(temporary_, "write");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_with(path_.string(), "put a file here");
  temporary_.clear();
  ::close(std::exchange(descriptor_, -1));
}

void make_private_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder.parent_path(), error);
  ::mkdir(folder.c_str(), 0700);
}

void reap_unfinished(const fs::path& folder, const std::function<bool(std::string_view name)>& is_ours) {
  std::error_code error;
  for (fs::directory_iterator item(folder, error), end; !error && item != end; item.increment(error)) {
    const std::string name = item->path().filename().string();
    if (name.size() <= kRandom.size()) continue;
    const std::string_view target(name.data(), name.size() - kRandom.size());
    if (name[target.size()] != '.' || !is_ours(target)) continue;
    const int descriptor = ::open(item->path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) continue;
    if (is_abandoned(descriptor)) ::unlink(item->path().c_str());
    ::close(descriptor);
  }
}

}  // namespace godwit
