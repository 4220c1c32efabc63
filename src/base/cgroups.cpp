#include "base/cgroups.h"

#include <fstream>
#include <string>

namespace godwit {

// Lines of /proc/self/cgroup are "id:controllers:/path"; an empty list of controllers is the unified tree.
void for_cgroups(const std::filesystem::path& root, std::string_view controller,
                 const std::function<void(const std::filesystem::path& folder, bool is_unified)>& visit) {
  const std::string wanted = "," + std::string(controller) + ",";
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool is_unified = controllers == ",,";
    if (!is_unified && controllers.find(wanted) == std::string::npos) continue;
    const auto mount = root / "sys/fs/cgroup" / (is_unified ? "" : controller);
    for (auto group = std::filesystem::path(line.substr(second + 1)).relative_path();; group = group.parent_path()) {
      visit(mount / group, is_unified);
      if (group.empty()) break;
    }
  }
}

}  // namespace godwit
