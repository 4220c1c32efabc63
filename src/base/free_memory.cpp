#include "base/free_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

#include "base/cgroups.h"

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

// The limits of the process's groups.
void lower_by_groups(std::uint64_t& least, const fs::path& root) {
  for_cgroups(root, "memory", [&](const fs::path& at, bool is_unified) {
    if (is_unified)
      lower(least, number_in(at / "memory.max"), number_in(at / "memory.current"));
    else
      lower(least, number_in(at / "memory.limit_in_bytes"), number_in(at / "memory.usage_in_bytes"));
  });
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
