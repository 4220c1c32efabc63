#include "decode/file_hashes.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "base/sha256.h"

namespace godwit::decode {
namespace {

namespace fs = std::filesystem;

Json to_json(const FileState& state) {
  return {{"device", state.device},
          {"inode", state.inode},
          {"bytes", state.bytes},
          {"written_ns", state.written_ns},
          {"changed_ns", state.changed_ns}};
}

// A write right after this moment could still carry the same time: clocks of file systems tick coarsely.
bool is_settled(const FileState& state) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  return ns - state.changed_ns > 2'000'000'000;
}

std::optional<std::string> remembered(const Json& known, const std::string& path, const FileState& state) {
  const auto found = known.find(path);
  if (found == known.end() || !found->is_object()) return std::nullopt;
  const auto hash = found->find("sha256");
  const auto seen = found->find("state");
  if (hash == found->end() || seen == found->end() || !hash->is_string() || *seen != to_json(state))
    return std::nullopt;
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

std::string FileHashes::of(const fs::path& file, const FileState& state) {
  const std::string path = fs::absolute(file).lexically_normal().string();
  const auto check = [&] {
    if (file_state(file) != state) fail(ErrorCode::io, "cache", "{}: was changed while the model was opened", path);
  };
  check();
  if (auto hash = remembered(known_, path, state)) return *hash;
  log_.info("hashing {}", path);
  std::string hash = sha256_of_file(file);
  check();
  if (!is_settled(state)) return hash;
  known_[path] = {{"sha256", hash}, {"state", to_json(state)}};
  is_changed_ = true;
  return hash;
}

void FileHashes::save() const {
  if (is_changed_ && !write_whole(memo_, dump_json(known_)))
    log_.warning("{}: cannot be written; models are hashed again at each start", memo_.string());
}

}  // namespace godwit::decode
