// Joins the parts of a GGUF model.
#include <set>

#include "base/error.h"
#include "checkpoint/gguf.h"

namespace godwit::checkpoint {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kMaxParts = 10000;

// "name-00002-of-00005.gguf" for part 1 (counted from 0) of 5, from the path of any part.
fs::path part_path(const fs::path& any, std::int64_t part, std::int64_t count) {
  const std::string name = any.filename().string();
  const std::string tail = fmt::format("-of-{:05}.gguf", count);
  const std::size_t digits = 6;  // "-00001"
  if (!name.ends_with(tail) || name.size() < tail.size() + digits)
    fail(ErrorCode::corrupt_file, "gguf", "{}: holds a part of {}, but its name does not end in -NNNNN{}",
         any.string(), count, tail);
  return any.parent_path() /
         fmt::format("{}-{:05}{}", name.substr(0, name.size() - tail.size() - digits), part + 1, tail);
}

GgufFile read_part(const fs::path& path, std::int64_t part, std::int64_t count) {
  if (!fs::exists(path))
    fail(ErrorCode::not_found, "gguf", "{}: part {} of {} is missing", path.string(), part + 1, count);
  GgufFile file = read_gguf(std::make_shared<const FileMap>(path));
  if (file.metadata.integer("split.count").value_or(1) != count ||
      file.metadata.integer("split.no").value_or(0) != part)
    fail(ErrorCode::corrupt_file, "gguf", "{}: says part {} of {}, its name says part {} of {}",
         path.string(), file.metadata.integer("split.no").value_or(0) + 1,
         file.metadata.integer("split.count").value_or(1), part + 1, count);
  return file;
}

}  // namespace

GgufFile open_gguf(const fs::path& path) {
  GgufFile whole = read_gguf(std::make_shared<const FileMap>(path));
  const std::int64_t count = whole.metadata.integer("split.count").value_or(1);
  if (count == 1) return whole;
  if (count < 1 || count > kMaxParts)
    fail(ErrorCode::corrupt_file, "gguf", "{}: split.count is {}", path.string(), count);
  whole = read_part(part_path(path, 0, count), 0, count);
  std::set<std::string> names;
  for (const TensorEntry& entry : whole.tensors) names.insert(entry.name);
  for (std::int64_t part = 1; part < count; ++part) {
    for (TensorEntry& entry : read_part(part_path(path, part, count), part, count).tensors) {
      if (!names.insert(entry.name).second)
        fail(ErrorCode::corrupt_file, "gguf", "{} is in two parts", describe(entry));
      whole.tensors.push_back(std::move(entry));
    }
  }
  const auto total = whole.metadata.integer("split.tensors.count");
  if (total && *total != static_cast<std::int64_t>(whole.tensors.size()))
    fail(ErrorCode::corrupt_file, "gguf", "{}: split.tensors.count is {}, the parts hold {}", path.string(),
         *total, whole.tensors.size());
  return whole;
}

}  // namespace godwit::checkpoint
