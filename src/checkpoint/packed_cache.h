// Packed matrices on disk: what was packed once is mapped at the next start.
//
// One file holds the matrices of one model: its name is the hash of the weight files' content, so a file that is
// copied, moved or touched is found again and one that was changed is not. The folder must be ours alone: who can write
// to it can change answers. Nothing in it is needed: what is missing, damaged or of another version is packed again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file_map.h"
#include "base/file_state.h"
#include "base/json.h"
#include "base/log.h"
#include "ops/packed_matrix.h"

namespace godwit::checkpoint {

class PackedCache {
 public:
  // All files of the folder together; the ones that were used longest ago make room.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 30;

  // For the model of these weight files, in `folder`, which is made when it is missing. `variant` tells apart what is
  // made of the same files in several ways. Hashes of the files are remembered in the folder too. Nothing is hashed or
  // opened before the first matrix is asked for: what native arithmetic refuses at once costs no hash. The methods throw
  // Error{io} where the weight files are no longer what `files` says.
  PackedCache(const std::filesystem::path& folder, const std::map<std::filesystem::path, FileState>& files,
              std::string variant, Log log);

  // Null where there is none of that name and shape. `name` must be the tensor's own in the model.
  std::shared_ptr<const ops::PackedMatrix> find(const std::string& name, const kernels::PackedShape& shape);
  // Takes note of one that find() did not know.
  void add(const std::string& name, std::shared_ptr<const ops::PackedMatrix> matrix);
  // Writes all matrices where one was added. What goes wrong is a warning.
  void save(std::uint64_t most_bytes = kMostBytes);

  const std::filesystem::path& file();

 private:
  void open();
  void write();

  std::filesystem::path folder_;
  std::map<std::filesystem::path, FileState> files_;
  std::string variant_;
  std::filesystem::path path_;  // empty until the first matrix is asked for
  Log log_;
  std::shared_ptr<const FileMap> map_;  // of path_, where it is there and whole
  std::map<std::string, Json> known_;   // by name: {"format", "rows", "columns", "at"}
  std::map<std::string, std::shared_ptr<const ops::PackedMatrix>> matrices_;
  bool is_changed_ = false;
};

}  // namespace godwit::checkpoint
