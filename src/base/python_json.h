// JSON as Python's json module writes it: NaN and the infinities are bare words, which no standard knows.
#pragma once

#include <filesystem>

#include "base/json.h"

namespace godwit {

// A config is small; what is larger than this is something else.
inline constexpr std::uintmax_t kPythonJsonMaxBytes = 32u << 20;

// Reads and parses a file. NaN, Infinity and -Infinity become {"__float__": "NaN"} and so on; strings stay as they are.
// A missing file is Error{not_found}, a malformed one and one past kPythonJsonMaxBytes are Error{corrupt_file}; all name
// the path.
Json read_python_json_file(const std::filesystem::path& path);

}  // namespace godwit
