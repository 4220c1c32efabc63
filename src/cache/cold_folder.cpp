#include "cache/cold_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/error.h"

namespace godwit::cache {
namespace fs = std::filesystem;
namespace {

constexpr mode_t kPrivate = 0700;
constexpr std::string_view kSuffix = ".kv";

void make(const fs::path& folder) {
  if (::mkdir(folder.c_str(), kPrivate) == 0 || errno == EEXIST) return;
  fail(ErrorCode::io, "cold", "{}: cannot make this folder: {}", folder.string(), std::strerror(errno));
}

void sync_folder(const fs::path& folder) {
  const ColdDescriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.get() >= 0) ::fsync(descriptor.get());
}

// Calls `visit` for each entry; errors end it.
template <typename Visit>
void each_entry(const fs::path& folder, Visit visit) {
  std::error_code error;
  for (fs::directory_iterator item(folder, error), end; !error && item != end; item.increment(error))
    visit(item->path());
}

bool is_prefix_name(const std::string& name) {
  return name.size() == 2 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

ColdFolder::ColdFolder(fs::path root, const Log& log) : root_(std::move(root)) {
  if (root_.filename().empty()) root_ = root_.parent_path();  // "dir/" is "dir"
  std::error_code error;
  if (root_.has_parent_path()) fs::create_directories(root_.parent_path(), error);
  make_root();
  struct stat info {};
  if (::stat(root_.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    fail(ErrorCode::io, "cold", "{}: is not a folder", root_.string());
  if (::access(root_.c_str(), R_OK | X_OK) != 0)
    fail(ErrorCode::io, "cold", "{}: cannot read this folder: {}", root_.string(), std::strerror(errno));
  if (::access(root_.c_str(), W_OK) != 0)
    log.warning("{}: cannot write to this folder ({}); nothing new will be cached on disk", root_.string(),
                std::strerror(errno));
  if (info.st_mode & (S_IWGRP | S_IWOTH))
    log.warning("{}: other users may write to this cache folder and so change answers; chmod 700 ends that",
                root_.string());
}

fs::path ColdFolder::record(const ColdKey& key) const {
  const std::string hex = key.hex();
  return root_ / hex.substr(0, 2) / (hex + std::string(kSuffix));
}

std::uint64_t ColdFolder::bytes_beside_records() const {
  std::uint64_t total = 0;
  each_entry(root_, [&](const fs::path& path) {
    struct stat info {};
    if (is_prefix_name(path.filename().string()) || path.native().ends_with("-journal")) return;
    if (::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) total += static_cast<std::uint64_t>(info.st_size);
  });
  return total;
}

void ColdFolder::make_root() const { make(root_); }

ColdDescriptor ColdFolder::lock() const {
  ColdDescriptor folder(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  while (folder.get() >= 0 && ::flock(folder.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  return folder;
}

void ColdFolder::make_folders(const ColdKey& key) const {
  make_root();
  const fs::path folder = record(key).parent_path();
  struct stat info {};
  if (::stat(folder.c_str(), &info) == 0) return;
  make(folder);
  sync_folder(root_);
}

void ColdFolder::sync(const ColdKey& key) const { sync_folder(record(key).parent_path()); }

void ColdFolder::scan(const std::function<void(const ColdKey&)>& on_record,
                      const std::function<void(const fs::path&)>& on_temp) const {
  each_entry(root_, [&](const fs::path& folder) {
    const std::string prefix = folder.filename().string();
    if (!is_prefix_name(prefix)) return;
    each_entry(folder, [&](const fs::path& file) {
      const std::string name = file.filename().string();
      if (is_temp_name(name)) return on_temp(file);
      if (!name.ends_with(kSuffix) || !name.starts_with(prefix)) return;
      const auto key = ColdKey::from_hex(std::string_view(name).substr(0, name.size() - kSuffix.size()));
      if (key) on_record(*key);
    });
  });
}

}  // namespace godwit::cache
