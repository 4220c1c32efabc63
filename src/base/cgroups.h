// The control groups that this process is in.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

namespace godwit {

// Calls visit(folder, is_unified) for each group that `controller` ("cpu", "memory") limits this process in, and for all
// those above it. `root` stands for "/" in tests.
void for_cgroups(const std::filesystem::path& root, std::string_view controller,
                 const std::function<void(const std::filesystem::path& folder, bool is_unified)>& visit);

}  // namespace godwit
