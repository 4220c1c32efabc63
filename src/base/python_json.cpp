#include "base/python_json.h"

#include <array>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file_map.h"

namespace godwit {
namespace {

std::string with_tagged_floats(std::string_view text) {
  constexpr std::array<std::string_view, 3> kWords = {"-Infinity", "Infinity", "NaN"};
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\' && i + 1 < text.size()) {
      out += text[i++];
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      for (const std::string_view word : kWords) {
        if (!text.substr(i).starts_with(word)) continue;
        out += fmt::format(R"({{"__float__":"{}"}})", word);
        i += word.size();
        break;
      }
    }
    if (i < text.size()) out += text[i];
  }
  return out;
}

}  // namespace

Json read_python_json_file(const std::filesystem::path& path) {
  const FileMap file(path);
  if (file.bytes().size() > kPythonJsonMaxBytes)
    fail(ErrorCode::corrupt_file, "json", "{}: {} bytes, where at most {} are read", path.string(), file.bytes().size(),
         kPythonJsonMaxBytes);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  try {
    return parse_json(with_tagged_floats(text), path.string());
  } catch (const Error& e) {
    throw Error(ErrorCode::corrupt_file, "json",
                std::string_view(e.what()).substr(std::string_view("[json] ").size()));
  }
}

}  // namespace godwit
