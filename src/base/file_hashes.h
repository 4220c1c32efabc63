// SHA-256 of large files, computed once and remembered in a folder by what the file system says of the file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/file_state.h"
#include "base/json.h"
#include "base/log.h"

namespace godwit {

class FileHashes {
 public:
  // Remembers in `folder`, which is made when it is missing and must be ours alone: who can write to it can name wrong hashes. What is
  // damaged there, or cannot be written, costs the time of hashing again.
  FileHashes(const std::filesystem::path& folder, Log log);

  // 64 hexadecimal digits of the file that was `state`. Throws Error{io, not_found}, also when it no longer is.
  std::string of(const std::filesystem::path& file, const FileState& state);
  // Adds what was computed to what is written down by then.
  void save() const;

 private:
  Json read(const Log& log) const;

  std::filesystem::path memo_;
  Log log_;
  Json known_ = Json::object();  // by absolute path
  std::vector<std::string> computed_;  // paths
};

}  // namespace godwit
