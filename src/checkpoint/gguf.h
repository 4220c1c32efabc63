// GGUF version 2 and 3: metadata, tensor table, data at an aligned start. Read by our own code because the
// format is taken from the network: every count and size is held against the bytes that are there before it
// is believed.
//
// Errors name file, key or tensor, and value: wrong magic, version 1 and big-endian files, counts that cannot
// fit, duplicate keys and tensors, nested arrays, more than 4 dimensions, unknown element types, offsets that
// are unaligned, overlap or lie outside. Padding after the last tensor may be missing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/string_list.h"
#include "checkpoint/tensor_entry.h"

namespace godwit::checkpoint {

// Integers and booleans of every width read as int64 (u64 above its range is refused), floats as double.
using GgufValue = std::variant<std::int64_t, double, bool, std::string, std::vector<std::int64_t>,
                               std::vector<double>, StringList>;

// Metadata with typed access. A wrong type throws Error{corrupt_file} naming file and key.
class GgufMetadata {
 public:
  GgufMetadata() = default;
  GgufMetadata(std::map<std::string, GgufValue, std::less<>> values, std::string origin)
      : values_(std::move(values)), origin_(std::move(origin)) {}

  bool has(std::string_view key) const { return values_.contains(key); }
  const GgufValue* find(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;  // integers count
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string> string(std::string_view key) const;
  // One value per layer; a scalar stands for all.
  std::optional<std::vector<std::int64_t>> integers(std::string_view key) const;
  std::optional<std::vector<double>> numbers(std::string_view key) const;
  const StringList* strings(std::string_view key) const;  // null: no such key
  // The same list, which is empty from then on.
  std::optional<StringList> take_strings(std::string_view key);

  const std::string& origin() const { return origin_; }
  const std::map<std::string, GgufValue, std::less<>>& values() const { return values_; }

 private:
  [[noreturn]] void bad(std::string_view key, std::string_view wanted) const;
  std::map<std::string, GgufValue, std::less<>> values_;
  std::string origin_;
};

struct GgufFile {
  std::uint32_t version = 0;
  GgufMetadata metadata;
  std::vector<TensorEntry> tensors;  // GGUF names, row-major shapes

  bool has(std::string_view tensor) const {
    return std::ranges::any_of(tensors, [&](const TensorEntry& entry) { return entry.name == tensor; });
  }
};

// One file as it stands.
GgufFile read_gguf(std::shared_ptr<const FileMap> file);

// A whole model: the parts name-00001-of-0000N.gguf are found from any one of them and joined.
GgufFile open_gguf(const std::filesystem::path& path);

}  // namespace godwit::checkpoint
