#include "checkpoint/tensor_fingerprint.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/canonical_json.h"
#include "base/error.h"
#include "base/file_pages.h"
#include "base/sha256.h"

namespace godwit::checkpoint {
namespace {

void add_head(Sha256& hash, const TensorEntry& entry) {
  Json shape = Json::array();
  for (const int dim : entry.shape) shape.push_back(dim);
  const std::string head = canonical_json({entry.name, std::string(info(entry.format).name), shape});
  hash.update(std::as_bytes(std::span(head)));
}

}  // namespace

Fingerprint tensor_fingerprint(std::span<const TensorEntry> entries) {
  std::vector<const TensorEntry*> sorted;
  for (const TensorEntry& entry : entries) sorted.push_back(&entry);
  const auto name_of = [](const TensorEntry* entry) { return std::string_view(entry->name); };
  std::ranges::sort(sorted, {}, name_of);
  if (const auto twice = std::ranges::adjacent_find(sorted, {}, name_of); twice != sorted.end())
    fail(ErrorCode::invalid_argument, "fingerprint", "two tensors are named {}", (*twice)->name);
  Sha256 hash;
  for (const TensorEntry* const entry : sorted) {
    add_head(hash, *entry);
    read_once(entry->bytes(), 1, [&](std::span<const std::byte> piece) { hash.update(piece); });
  }
  return {hash.hex_digest()};
}

}  // namespace godwit::checkpoint
