// How much memory this process may still take.
#pragma once

#include <cstdint>
#include <filesystem>

namespace godwit {

// The least of what the system calls available and what the limits of the control groups leave. Where the system says
// neither, all of its memory. `root` stands for "/" in tests.
std::uint64_t free_memory(const std::filesystem::path& root = "/");

}  // namespace godwit
