// A read-only memory map of a whole file. Pages are loaded on use; the map lives as long as the object.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace godwit {

class FileMap {
 public:
  // Throws Error{not_found} for a missing path and Error{io} for anything that cannot be mapped (a folder, no
  // permission). An empty file maps to an empty span.
  explicit FileMap(const std::filesystem::path& path);
  ~FileMap();
  FileMap(FileMap&& other) noexcept;
  FileMap& operator=(FileMap&& other) noexcept;
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace godwit
