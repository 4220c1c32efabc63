// What tells whether a path still names the same bytes.
#pragma once

#include <cstdint>
#include <filesystem>

namespace godwit {

// Changes whenever somebody writes to the file or puts another in its place.
struct FileState {
  std::uint64_t device = 0, inode = 0, bytes = 0;
  std::int64_t written_ns = 0, changed_ns = 0;  // since 1970: of the content, and of anything about it

  bool operator==(const FileState&) const = default;
};

// Throws Error{not_found}.
FileState file_state(const std::filesystem::path& file);

}  // namespace godwit
