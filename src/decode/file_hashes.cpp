#include "decode/file_hashes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "base/sha256.h"

namespace godwit::decode {
namespace {

namespace fs = std::filesystem;

#if defined(__APPLE__)
const timespec& changed_at(const struct stat& info) { return info.st_ctimespec; }
const timespec& written_at(const struct stat& info) { return info.st_mtimespec; }
#else
const timespec& changed_at(const struct stat& info) { return info.st_ctim; }
const timespec& written_at(const struct stat& info) { return info.st_mtim; }
#endif

std::int64_t nanoseconds(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

// What changes whenever somebody writes to the file or puts another in its place.
Json state_of(const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) fail(ErrorCode::not_found, "cache", "{}: cannot be looked at", file.string());
  return {{"device", static_cast<std::uint64_t>(info.st_dev)},
          {"inode", static_cast<std::uint64_t>(info.st_ino)},
          {"bytes", static_cast<std::int64_t>(info.st_size)},
          {"written_ns", nanoseconds(written_at(info))},
          {"changed_ns", nanoseconds(changed_at(info))}};
}

// A write right after this moment could still carry the same time: clocks of file systems tick coarsely.
bool is_settled(const Json& state) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  return ns - state["changed_ns"].get<std::int64_t>() > 2'000'000'000;
}

std::optional<std::string> remembered(const Json& known, const std::string& path, const Json& state) {
  const auto found = known.find(path);
  if (found == known.end() || !found->is_object()) return std::nullopt;
  const auto hash = found->find("sha256");
  const auto seen = found->find("state");
  if (hash == found->end() || seen == found->end() || !hash->is_string() || *seen != state) return std::nullopt;
  return hash->get<std::string>();
}

// mkstemp makes files that only their owner can read.
bool write_whole(const fs::path& path, const std::string& text) {
  std::string temporary = path.string() + ".XXXXXX";
  const int descriptor = ::mkstemp(temporary.data());
  if (descriptor < 0) return false;
  const bool is_written = ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const bool is_closed = ::close(descriptor) == 0;
  if (is_written && is_closed && ::rename(temporary.c_str(), path.c_str()) == 0) return true;
  ::unlink(temporary.c_str());
  return false;
}

}  // namespace

FileHashes::FileHashes(const fs::path& folder, Log log) : memo_(folder / "hashes.v1.json"), log_(std::move(log)) {
  std::error_code error;
  if (!fs::exists(memo_, error)) return;
  try {
    Json found = read_json_file(memo_);
    if (found.is_object()) known_ = std::move(found);
  } catch (const Error& problem) {
    log_.warning("{}; it is made again", problem.what());
  }
}

std::string FileHashes::of(const fs::path& file) {
  const std::string path = fs::absolute(file).lexically_normal().string();
  const Json state = state_of(file);
  if (auto hash = remembered(known_, path, state)) return *hash;
  log_.info("hashing {}", path);
  std::string hash = sha256_of_file(file);
  if (state_of(file) != state) fail(ErrorCode::io, "cache", "{}: changes while it is read", path);
  if (!is_settled(state)) return hash;
  known_[path] = {{"sha256", hash}, {"state", state}};
  is_changed_ = true;
  return hash;
}

void FileHashes::save() const {
  if (is_changed_ && !write_whole(memo_, dump_json(known_)))
    log_.warning("{}: cannot be written; models are hashed again at each start", memo_.string());
}

}  // namespace godwit::decode
