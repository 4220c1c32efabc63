#include "hub/cache_writer.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "hub/hub_paths.h"

namespace godwit::hub {
namespace fs = std::filesystem;
namespace {

std::optional<std::uint64_t> size_at(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  const auto size = fs::file_size(path, error);
  if (error) return std::nullopt;
  return size;
}

bool is_no_link_support(int code) {
  return code == EPERM || code == ENOSYS || code == EOPNOTSUPP || code == ENOTSUP || code == EINVAL;
}

}  // namespace

CacheWriter::CacheWriter(fs::path root, const std::string& repo, std::string commit, const DiskCalls& disk)
    : root_(std::move(root)),
      folder_(root_ / repo_folder_name(repo)),
      commit_(std::move(commit)),
      disk_(disk) {}

fs::path CacheWriter::lock(const RepoFile& file) const {
  return root_ / ".locks" / folder_.filename() / (file.hash + ".lock");
}

std::uint64_t CacheWriter::missing_bytes(const RepoFile& file) const {
  if (size_at(blob(file)) == file.size || size_at(pointer(file)) == file.size) return 0;
  const auto here = size_at(partial(file)).value_or(0);
  return here <= file.size ? file.size - here : file.size;
}

bool CacheWriter::is_plain_file_here(const RepoFile& file) const {
  std::error_code error;
  return fs::symlink_status(pointer(file), error).type() == fs::file_type::regular &&
         size_at(pointer(file)) == file.size;
}

void CacheWriter::link(const RepoFile& file, bool is_last_name) const {
  const fs::path pointer_path = pointer(file);
  std::error_code error;
  if (is_plain_file_here(file)) return;
  std::string target = "../../blobs/" + file.hash;
  for (const char c : file.name)
    if (c == '/') target.insert(0, "../");
  if (fs::read_symlink(pointer_path, error) == target) return;
  make_folders(pointer_path.parent_path());
  const fs::path fresh = pointer_path.string() + fmt::format(".{}.new", ::getpid());
  ::unlink(fresh.c_str());
  if (disk_.symlink(target.c_str(), fresh.c_str()) == 0) {
    if (::rename(fresh.c_str(), pointer_path.c_str()) == 0) return;
    ::unlink(fresh.c_str());
  } else if (is_no_link_support(errno)) {
    return place_file(file, is_last_name);
  }
  fail(ErrorCode::io, "hub", "{}: cannot link: {}", pointer_path.string(), std::strerror(errno));
}

// Moving costs no second copy of a large file; a blob with several names is copied for all but the last.
void CacheWriter::place_file(const RepoFile& file, bool is_last_name) const {
  std::error_code error;
  if (is_last_name)
    fs::rename(blob(file), pointer(file), error);
  else
    fs::copy_file(blob(file), pointer(file), fs::copy_options::overwrite_existing, error);
  if (error)
    fail(ErrorCode::io, "hub", "{}: cannot be put in place: {}", pointer(file).string(), error.message());
}

void CacheWriter::write_ref(const std::string& revision) const {
  if (revision == commit_) return;
  replace_file(disk_, folder_ / "refs" / revision, commit_);
}

}  // namespace godwit::hub
