#include "cache/cold_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace godwit::cache {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kPiece = 1 << 20;
constexpr std::size_t kStart = 12;  // magic and version
constexpr std::size_t kHexDigits = 64, kRandom = 6;

[[noreturn]] void io_failure(const fs::path& path, std::string_view what, int code) {
  fail(ErrorCode::io, "cold", "{}: {}: {}", path.string(), what, std::strerror(code));
}

std::int64_t nanoseconds(const struct stat& info) {
#ifdef __APPLE__
  const timespec& time = info.st_mtimespec;
#else
  const timespec& time = info.st_mtim;
#endif
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

bool lock(int descriptor, int how) {
  int result;
  do result = ::flock(descriptor, how);
  while (result != 0 && errno == EINTR);
  return result == 0;
}

}  // namespace

ColdDescriptor::~ColdDescriptor() {
  if (value_ >= 0) ::close(value_);
}

std::optional<ColdFile> ColdFile::open(const fs::path& path) {
  ColdFile file;
  // O_NONBLOCK: a pipe under this name must not make us wait.
  file.file_ = ColdDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.file_.get() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    if (errno == ELOOP || errno == ENXIO) fail(ErrorCode::unsupported, "cold", "is not a regular file");
    fail(ErrorCode::io, "cold", "cannot open: {}", std::strerror(errno));
  }
  struct stat info {};
  if (::fstat(file.file_.get(), &info) != 0)
    fail(ErrorCode::io, "cold", "stat failed: {}", std::strerror(errno));
  if (!S_ISREG(info.st_mode)) fail(ErrorCode::unsupported, "cold", "is not a regular file");
  file.device_ = info.st_dev;
  file.inode_ = info.st_ino;
  file.bytes_ = static_cast<std::uint64_t>(info.st_size);
  file.modified_ns_ = nanoseconds(info);
  return file;
}

void ColdFile::read_at(std::uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t count = ::pread(file_.get(), into.data(), into.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(ErrorCode::io, "cold", "read failed: {}", std::strerror(errno));
    if (count == 0) fail(ErrorCode::corrupt_file, "cold", "ends at byte {}", offset);
    offset += static_cast<std::uint64_t>(count);
    into = into.subspan(static_cast<std::size_t>(count));
  }
}

const ColdHeader& ColdFile::load() {
  std::array<std::byte, kColdPrefix> prefix{};
  const std::span start = std::span(prefix).first(std::min<std::uint64_t>(bytes_, kColdPrefix));
  read_at(0, start);
  std::vector<std::byte> front(front_bytes(start, bytes_));
  read_at(0, front);
  header_ = parse_front(front, bytes_);
  return header_;
}

void ColdFile::read_part(std::size_t index, std::span<std::byte> into) const {
  const ColdPartPlace& place = header_.parts.at(index);
  GODWIT_CHECK(into.size() == place.bytes);
  ColdHasher hash;
  for (std::size_t done = 0; done < into.size(); done += kPiece) {
    const auto piece = into.subspan(done, std::min(kPiece, into.size() - done));
    read_at(place.offset + done, piece);
    hash.update(piece);  // while it is in the processor's cache
  }
  std::array<std::byte, kColdAlign> rest;
  const std::span padding = std::span(rest).first(padded(place.bytes) - place.bytes);
  read_at(place.offset + place.bytes, padding);
  hash.update(padding);
  if (hash.digest() != place.hash)
    fail(ErrorCode::corrupt_file, "cold", "part {} does not match its hash", index);
}

bool ColdFile::is_ours() const {
  std::array<std::byte, kStart> bytes{};
  const std::span start = std::span(bytes).first(std::min<std::uint64_t>(bytes_, kStart));
  try {
    read_at(0, start);
  } catch (const Error&) {
    return false;
  }
  return is_cold_start(start);
}

void ColdFile::remove_from(const fs::path& path) const {
  struct stat named {};
  if (::lstat(path.c_str(), &named) == 0 && named.st_ino == inode_ && named.st_dev == device_)
    ::unlink(path.c_str());
}

ColdTemp::ColdTemp(const fs::path& target, const ColdRecord& record, const ColdHooks& hooks)
    : target_(target), hooks_(hooks) {
  const auto step = [&](ColdStep done) {
    if (hooks.after) hooks.after(done);
  };
  const std::vector<std::byte> front = encode_front(record);
  try {
    make();
    step(ColdStep::temp_made);
    write(front);
    step(ColdStep::front_written);
    constexpr std::array<std::byte, kColdAlign> kZeros{};
    for (const ColdPart& part : record.parts) {
      write(part.bytes);
      write(std::span(kZeros).first(padded(part.bytes.size()) - part.bytes.size()));
    }
    step(ColdStep::parts_written);
    if (::fsync(file_.get()) != 0) io_failure(path_, "fsync failed", errno);
    step(ColdStep::file_synced);
  } catch (...) {
    ::unlink(path_.c_str());
    throw;
  }
}

ColdTemp::~ColdTemp() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

// The lock is what tells others that the writer lives: process ids mean nothing in another container.
// Somebody who reaps may be quicker than the lock; then the name is gone and another is made.
void ColdTemp::make() {
  const std::string pattern =
      (target_.parent_path() / ("." + target_.stem().string() + "." + std::string(kRandom, 'X'))).string();
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string name = pattern;
    file_ = ColdDescriptor(::mkostemp(name.data(), O_CLOEXEC));  // mode 0600
    if (file_.get() < 0) io_failure(target_.parent_path(), "cannot make a file here", errno);
    path_ = name;
    struct stat info {};
    if (!lock(file_.get(), LOCK_EX)) return;  // no locks on this file system: nobody reaps either
    if (::fstat(file_.get(), &info) == 0 && info.st_nlink > 0) return;
  }
  fail(ErrorCode::io, "cold", "{}: temporary files vanish", target_.parent_path().string());
}

void ColdTemp::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = hooks_.write ? hooks_.write(file_.get(), bytes.data(), bytes.size())
                                       : ::write(file_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) io_failure(path_, "write failed", count < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void ColdTemp::publish() {
  if (::rename(path_.c_str(), target_.c_str()) != 0) io_failure(target_, "rename failed", errno);
  path_.clear();
}

bool is_temp_name(std::string_view name) {
  return name.size() == kHexDigits + kRandom + 2 && name.front() == '.' && name[kHexDigits + 1] == '.' &&
         ColdKey::from_hex(name.substr(1, kHexDigits)).has_value();
}

void reap_temp(const fs::path& path) {
  const ColdDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  if (!lock(file.get(), LOCK_EX | LOCK_NB)) return;
  std::array<std::byte, kStart> start{};
  const ssize_t count = ::pread(file.get(), start.data(), start.size(), 0);
  if (count >= 0 && is_cold_start(std::span(start).first(static_cast<std::size_t>(count))))
    ::unlink(path.c_str());
}

}  // namespace godwit::cache
