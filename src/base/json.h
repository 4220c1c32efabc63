// JSON with key order kept (templates and answers depend on it) and a guarded parser for untrusted text.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace godwit {

using Json = nlohmann::ordered_json;

inline constexpr int kJsonMaxDepth = 128;

// Parses `text`; throws Error{invalid_argument} naming `origin` and the byte where it stopped making sense.
// Nesting past kJsonMaxDepth, invalid UTF-8 and trailing text are errors; a UTF-8 byte order mark is skipped.
Json parse_json(std::string_view text, std::string_view origin);

// Reads and parses a file. A missing file is Error{not_found}, a malformed one Error{corrupt_file}; both name
// the path.
Json read_json_file(const std::filesystem::path& path);

// Serialises without ever throwing: bytes that are not UTF-8 become U+FFFD.
std::string dump_json(const Json& value, int indent = -1);

}  // namespace godwit
