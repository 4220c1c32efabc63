#include "base/file_hashes.h"

#include <chrono>
#include <optional>
#include <string_view>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/sha256.h"

namespace godwit {
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

}  // namespace

FileHashes::FileHashes(const fs::path& folder, Log log) : memo_(folder / "hashes.v1.json"), log_(std::move(log)) {
  make_private_folder(folder);
  reap_unfinished(folder, [this](std::string_view name) { return name == memo_.filename().string(); });
  known_ = read(log_);
}

Json FileHashes::read(const Log& log) const {
  std::error_code error;
  if (!fs::exists(memo_, error)) return Json::object();
  try {
    Json found = read_json_file(memo_);
    if (found.is_object()) return found;
  } catch (const Error& problem) {
    log.warning("{}; it is made again", problem.what());
  }
  return Json::object();
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
  computed_.push_back(path);
  return hash;
}

void FileHashes::save() const {
  if (computed_.empty()) return;
  try {
    Json all = read(Log());  // with what other processes have written meanwhile; of damage was said before
    for (const std::string& path : computed_) all[path] = known_[path];
    AtomicFile file(memo_);
    file.write(dump_json(all));
    file.commit();
  } catch (const Error& error) {
    log_.warning("{}; models are hashed again at each start", error.what());
  }
}

}  // namespace godwit
