// Small files for the tests of this module, built byte by byte: the readers' own idea of the format is not
// involved.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"

namespace godwit::checkpoint {

// An empty folder for one test of this process (tests run side by side), under the system's temporary folder.
inline std::filesystem::path fresh_folder(const std::string& name) {
  const auto folder = std::filesystem::temp_directory_path() /
                      ("godwit_checkpoint_" + name + "_" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

inline std::filesystem::path write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

template <typename T>
std::string le(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

inline std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
  return le(std::uint64_t{header.size()}) + header + data;
}

// Builds a GGUF v3 file piece by piece.
class GgufBytes {
 public:
  static std::string text(const std::string& value) { return le(std::uint64_t{value.size()}) + value; }
  GgufBytes& pair(const std::string& key, std::uint32_t type, const std::string& value) {
    pairs_ += text(key) + le(type) + value;
    ++pair_count_;
    return *this;
  }
  GgufBytes& string(const std::string& key, const std::string& value) { return pair(key, 8, text(value)); }
  GgufBytes& u32(const std::string& key, std::uint32_t value) { return pair(key, 4, le(value)); }
  GgufBytes& f32(const std::string& key, float value) { return pair(key, 6, le(value)); }
  GgufBytes& strings(const std::string& key, const std::vector<std::string>& values) {
    std::string bytes = le(std::uint32_t{8}) + le(std::uint64_t{values.size()});
    for (const auto& value : values) bytes += text(value);
    return pair(key, 9, bytes);
  }
  // `dims` fastest first, as in the file.
  GgufBytes& tensor(const std::string& name, const std::vector<std::uint64_t>& dims, std::uint32_t type,
                    const std::string& data) {
    table_ += text(name) + le(static_cast<std::uint32_t>(dims.size()));
    for (const auto dim : dims) table_ += le(dim);
    table_ += le(type) + le(std::uint64_t{data_.size()});
    data_ += data;
    pad(data_);
    ++tensor_count_;
    return *this;
  }
  std::string bytes() const {
    std::string head = "GGUF" + le(std::uint32_t{3}) + le(tensor_count_) + le(pair_count_) + pairs_ + table_;
    pad(head);
    return head + data_;
  }

 private:
  static void pad(std::string& bytes) { bytes.resize((bytes.size() + 31) / 32 * 32, '\0'); }
  std::string pairs_, table_, data_;
  std::uint64_t pair_count_ = 0, tensor_count_ = 0;
};

// The body must throw an Error of `code` whose message holds every one of `parts`.
template <typename Body>
void expect_error(ErrorCode code, const std::vector<std::string>& parts, Body&& body) {
  try {
    body();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(static_cast<int>(e.code()), static_cast<int>(code)) << e.what();
    for (const auto& part : parts)
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos)
          << "'" << part << "' is not in: " << e.what();
  }
}

}  // namespace godwit::checkpoint
