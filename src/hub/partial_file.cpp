#include "hub/partial_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace godwit::hub {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kPiece = 1 << 20;

[[noreturn]] void io_failure(const fs::path& path, std::string_view what) {
  fail(ErrorCode::io, "hub", "{}: {}: {}", path.string(), what, std::strerror(errno));
}

}  // namespace

PartialFile::PartialFile(const fs::path& path, const RepoFile& file, const DiskCalls& disk)
    : path_(path), file_(file), disk_(disk), handle_(path), hash_(file.kind, file.size) {}

void PartialFile::rehash(const std::function<void(std::uint64_t)>& on_piece) {
  struct stat info {};
  if (::fstat(handle_.descriptor(), &info) != 0) io_failure(path_, "stat failed");
  if (static_cast<std::uint64_t>(info.st_size) > file_.size) return restart();
  std::vector<std::byte> piece(kPiece);
  for (;;) {
    const ssize_t count = ::read(handle_.descriptor(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) io_failure(path_, "read failed");
    if (count == 0) return;
    hash_.update(std::span(piece.data(), static_cast<std::size_t>(count)));
    size_ += static_cast<std::uint64_t>(count);
    if (on_piece) on_piece(size_);
  }
}

void PartialFile::append(std::span<const std::byte> bytes) {
  if (bytes.size() > file_.size - size_)
    fail(ErrorCode::corrupt_file, "hub", "{}: the server sends more than the {} bytes it announced",
         file_.name, file_.size);
  write_all(disk_, handle_.descriptor(), bytes, path_);
  hash_.update(bytes);
  size_ += bytes.size();
}

void PartialFile::restart() {
  if (::ftruncate(handle_.descriptor(), 0) != 0) io_failure(path_, "truncate failed");
  if (::lseek(handle_.descriptor(), 0, SEEK_SET) != 0) io_failure(path_, "seek failed");
  hash_ = ContentHash(file_.kind, file_.size);
  size_ = 0;
}

bool PartialFile::verify() { return is_full() && hash_.hex_digest() == file_.hash; }

void PartialFile::publish(const fs::path& blob) {
  if (::fsync(handle_.descriptor()) != 0) io_failure(path_, "fsync failed");
  if (::rename(path_.c_str(), blob.c_str()) != 0) io_failure(blob, "rename failed");
  sync_folder(blob.parent_path());
}

}  // namespace godwit::hub
