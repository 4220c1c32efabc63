// The header of a safetensors file: JSON in which a name may stand only once and nesting is shallow. Names
// are looked up by tree, so a header of a million tensors stays quick.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace godwit::checkpoint {

using HeaderJson = nlohmann::json;

// Throws Error{corrupt_file} naming `origin` for malformed text, duplicate keys and nesting past 16.
HeaderJson parse_header_json(std::string_view text, std::string_view origin);

// For messages: bytes that are not UTF-8 are replaced, long values are cut.
std::string header_text(const HeaderJson& value);

}  // namespace godwit::checkpoint
