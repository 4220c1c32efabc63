// The layout of the cold tier's folder: FOLDER/ab/abcd….kv with the key in hexadecimal, and
// FOLDER/index.v1.sqlite.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "base/log.h"
#include "cache/cold_file.h"
#include "cache/cold_record.h"

namespace godwit::cache {

class ColdFolder {
 public:
  // Makes the folder, mode 0700, and folders above it. Throws Error{io} when that fails or it cannot be
  // listed. One that cannot be written, or that others may write, is a warning.
  ColdFolder(std::filesystem::path root, const Log& log);

  std::filesystem::path record(const ColdKey& key) const;
  std::filesystem::path index() const { return root_ / "index.v1.sqlite"; }
  const std::filesystem::path& root() const { return root_; }

  // Bytes of the files that lie in the folder itself, beside the folders of records: the index, what others remember
  // here, what people have put here. Without the index's journal, which is empty between two changes.
  std::uint64_t bytes_beside_records() const;

  // Makes what is missing of the folders of a record. Throws Error{io}.
  void make_folders(const ColdKey& key) const;
  void make_root() const;
  // Waits until no other process holds it; it ends with the descriptor. On a file system without locks, and where the
  // folder is gone, it holds nobody back.
  ColdDescriptor lock() const;
  // Makes a rename last. Errors are ignored: not every file system can.
  void sync(const ColdKey& key) const;

  // Calls `on_record` for each file with the name of a record and `on_temp` for each with that of a temporary
  // one. Folders that cannot be read are passed over.
  void scan(const std::function<void(const ColdKey&)>& on_record,
            const std::function<void(const std::filesystem::path&)>& on_temp) const;

 private:
  std::filesystem::path root_;
};

}  // namespace godwit::cache
