#include "base/json.h"

#include "base/error.h"
#include "base/file_map.h"
#include "base/json_builder.h"
#include "base/unique_json.h"

namespace godwit {
namespace {

// nlohmann's parser keeps its own stack on the heap but its destructor and our walkers recurse, so depth is
// capped first.
std::size_t first_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kJsonMaxDepth) return i;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return std::string_view::npos;
}

// nlohmann prefixes "[json.exception.parse_error.101] parse error at line 1, column 2: "; the tail is what a
// reader needs.
std::string_view tail_of(std::string_view what) {
  const auto bracket = what.find("] ");
  return bracket == std::string_view::npos ? what : what.substr(bracket + 2);
}

Json parsed(std::string_view text, std::string_view origin, JsonBuilder::EqualKeys equal_keys) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (const auto at = first_too_deep(text); at != std::string_view::npos)
    fail(ErrorCode::invalid_argument, "json", "{}: nesting deeper than {} at byte {}", origin, kJsonMaxDepth,
         at);
  // The parser takes a NUL for the end of its input and would not see what follows.
  if (const auto at = text.find('\0'); at != std::string_view::npos)
    fail(ErrorCode::invalid_argument, "json", "{}: a NUL at byte {}", origin, at);
  JsonBuilder builder(equal_keys);
  if (!Json::sax_parse(text, &builder))
    fail(ErrorCode::invalid_argument, "json", "{}: {}", origin, tail_of(builder.error()));
  return builder.take();
}

}  // namespace

Json parse_json(std::string_view text, std::string_view origin) {
  return parsed(text, origin, JsonBuilder::EqualKeys::last_counts);
}

Json parse_unique_json(std::string_view text, std::string_view origin) {
  return parsed(text, origin, JsonBuilder::EqualKeys::refused);
}

Json read_json_file(const std::filesystem::path& path) {
  const FileMap file(path);
  const auto bytes = file.bytes();
  try {
    return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
  } catch (const Error& e) {
    throw Error(ErrorCode::corrupt_file, "json",
                std::string_view(e.what()).substr(std::string_view("[json] ").size()));
  }
}

std::string dump_json(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace godwit
