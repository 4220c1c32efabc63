// Where the pieces of one repository go in the cache, and the last two steps of a download: links and refs.
#pragma once

#include <filesystem>
#include <string>

#include "hub/disk.h"
#include "hub/repo_api.h"

namespace godwit::hub {

class CacheWriter {
 public:
  CacheWriter(std::filesystem::path root, const std::string& repo, std::string commit, const DiskCalls& disk);

  std::filesystem::path snapshot() const { return folder_ / "snapshots" / commit_; }
  std::filesystem::path blob(const RepoFile& file) const { return folder_ / "blobs" / file.hash; }
  std::filesystem::path partial(const RepoFile& file) const { return blob(file).string() + ".incomplete"; }
  std::filesystem::path lock(const RepoFile& file) const;
  std::filesystem::path pointer(const RepoFile& file) const { return snapshot() / file.name; }

  // Bytes of `file` that are not here yet; partial ones count as here.
  std::uint64_t missing_bytes(const RepoFile& file) const;

  // snapshots/<commit>/<name> -> ../../blobs/<hash>, replaced in one step. Where the file system has no links
  // the snapshot holds the file itself, as huggingface_hub does it; `is_last_name` then allows the blob to be
  // moved there. Call with the blob complete. Throws Error{io}.
  void link(const RepoFile& file, bool is_last_name) const;

  // The snapshot holds the complete file itself, not a link.
  bool is_plain_file_here(const RepoFile& file) const;

  // Last of all. A revision that is the commit itself needs no ref.
  void write_ref(const std::string& revision) const;

 private:
  void place_file(const RepoFile& file, bool is_last_name) const;

  std::filesystem::path root_, folder_;
  std::string commit_;
  const DiskCalls& disk_;
};

}  // namespace godwit::hub
