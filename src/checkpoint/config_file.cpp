// config.json as Python writes it.
#include <array>

#include "base/error.h"
#include "base/file_map.h"
#include "checkpoint/config.h"

namespace godwit::checkpoint {
namespace {

// Python writes non-finite numbers as bare words, which are no JSON: Infinity becomes
// {"__float__":"Infinity"}, the form that parse_config() understands. Strings stay as they are.
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

Json read_python_json(const std::filesystem::path& path) {
  const FileMap file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  try {
    return parse_json(with_tagged_floats(text), path.string());
  } catch (const Error& e) {
    throw Error(ErrorCode::corrupt_file, "json",
                std::string_view(e.what()).substr(std::string_view("[json] ").size()));
  }
}

}  // namespace

Config read_config(const std::filesystem::path& folder) {
  const auto path = folder / "config.json";
  const auto generation_path = folder / "generation_config.json";
  const Json config = read_python_json(path);
  std::optional<Json> generation;
  if (std::filesystem::exists(generation_path)) generation = read_python_json(generation_path);
  return parse_config(config, generation, path.string());
}

}  // namespace godwit::checkpoint
