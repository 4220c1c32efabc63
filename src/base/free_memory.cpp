#include "base/free_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

namespace godwit {
namespace {

namespace fs = std::filesystem;

// A file that holds one number; "max", garbage and a missing file as nothing.
std::optional<std::uint64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

// "MemAvailable:   12345 kB"
std::optional<std::uint64_t> available(const fs::path& root) {
  std::ifstream file(root / "proc/meminfo");
  for (std::string name, unit; file >> name; std::getline(file, unit)) {
    std::uint64_t kilobytes = 0;
    if (name == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

void lower(std::uint64_t& least, std::optional<std::uint64_t> limit, std::optional<std::uint64_t> used) {
  if (limit && used) least = std::min(least, *limit > *used ? *limit - *used : 0);
}

// The limits of a group and of those above it. Lines of /proc/self/cgroup are "id:controllers:/path"; an empty list of
// controllers is the unified tree.
void lower_by_groups(std::uint64_t& least, const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool is_unified = controllers == ",,";
    if (!is_unified && controllers.find(",memory,") == std::string::npos) continue;
    const fs::path mount = root / (is_unified ? "sys/fs/cgroup" : "sys/fs/cgroup/memory");
    for (fs::path group = fs::path(line.substr(second + 1)).relative_path();; group = group.parent_path()) {
      const fs::path at = mount / group;
      if (is_unified)
        lower(least, number_in(at / "memory.max"), number_in(at / "memory.current"));
      else
        lower(least, number_in(at / "memory.limit_in_bytes"), number_in(at / "memory.usage_in_bytes"));
      if (group.empty()) break;
    }
  }
}

std::uint64_t installed() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), bytes = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && bytes > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(bytes) : 0;
}

}  // namespace

std::uint64_t free_memory(const fs::path& root) {
  std::uint64_t least = available(root).value_or(installed());
  lower_by_groups(least, root);
  return least;
}

}  // namespace godwit
