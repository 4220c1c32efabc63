#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "base/cgroups.h"
#include "base/thread_pool.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace godwit {
namespace {

int affinity_count() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
  return static_cast<int>(std::thread::hardware_concurrency());
}

// The first two words of a file, "max" and a missing file as nothing.
std::optional<double> quota_of(const std::string& quota, const std::string& period) {
  try {
    const double time = std::stod(quota), span = std::stod(period);
    if (time > 0 && span > 0) return time / span;
  } catch (const std::exception&) {
    // "max", "-1" or an empty file: no limit at this level
  }
  return std::nullopt;
}

std::string word_of(const std::filesystem::path& path, int index) {
  std::ifstream file(path);
  std::string word;
  for (int i = 0; i <= index; i++)
    if (!(file >> word)) return {};
  return word;
}

std::optional<double> quota_at(const std::filesystem::path& folder) {
  const auto unified = folder / "cpu.max";
  if (const auto quota = quota_of(word_of(unified, 0), word_of(unified, 1))) return quota;
  return quota_of(word_of(folder / "cpu.cfs_quota_us", 0), word_of(folder / "cpu.cfs_period_us", 0));
}

std::optional<double> cgroup_quota(const std::filesystem::path& root) {
  std::optional<double> smallest;
  for_cgroups(root, "cpu", [&](const std::filesystem::path& folder, bool) {
    if (const auto quota = quota_at(folder)) smallest = std::min(quota.value(), smallest.value_or(*quota));
  });
  return smallest;
}

}  // namespace

int cpu_allowance(const std::filesystem::path& root) {
  int count = affinity_count();
  if (const auto quota = cgroup_quota(root)) {
    const int whole = static_cast<int>(std::min(*quota, 1e6));
    count = std::min(count, whole < *quota ? whole + 1 : whole);
  }
  return std::max(count, 1);
}

}  // namespace godwit
