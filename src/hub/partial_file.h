// blobs/<hash>.incomplete: bytes of a blob that are here already, with the hash of exactly those bytes.
//
// The state is always (n bytes in the file, hash over these n bytes). A download that stops leaves the file;
// the next one hashes what it finds and goes on behind it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

#include "hub/content_hash.h"
#include "hub/disk.h"
#include "hub/repo_api.h"

namespace godwit::hub {

class PartialFile {
 public:
  // Opens or creates. Nothing is hashed yet: call rehash() first.
  PartialFile(const std::filesystem::path& path, const RepoFile& file, const DiskCalls& disk);

  // Hashes the bytes found on opening, in pieces of 1 MiB; `on_piece` hears of each and may throw to stop. A
  // file longer than the blob is emptied.
  void rehash(const std::function<void(std::uint64_t done)>& on_piece);

  // Throws Error{io} when the disk refuses, Error{corrupt_file} when more bytes come than the blob has.
  // After an error the file may hold bytes the hash has not seen: drop the object, the next one hashes them.
  void append(std::span<const std::byte> bytes);
  void restart();  // back to zero bytes

  std::uint64_t size() const { return size_; }
  bool is_full() const { return size_ == file_.size; }

  // Ends the hash and compares. False: the bytes are not those of the blob.
  bool verify();

  // fsync, then rename to `blob`. Only after verify() said true.
  void publish(const std::filesystem::path& blob);

 private:
  std::filesystem::path path_;
  RepoFile file_;
  const DiskCalls& disk_;
  File handle_;
  ContentHash hash_;
  std::uint64_t size_ = 0;
};

}  // namespace godwit::hub
