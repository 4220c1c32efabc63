// Which files of a folder hold weights.
#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"

namespace godwit::checkpoint {
namespace {

namespace fs = std::filesystem;

// A file name inside the folder: an index from elsewhere must not reach out of it.
void check_plain_name(const std::string& name, const fs::path& index) {
  if (name.empty() || fs::path(name).filename() != fs::path(name) || name == "." || name == "..")
    fail(ErrorCode::corrupt_file, "safetensors", "{}: '{}' is not the name of a file beside it",
         index.string(), name);
}

std::vector<fs::path> indexed_files(const fs::path& folder, const fs::path& index) {
  const Json json = read_json_file(index);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || map == json.end() || !map->is_object())
    fail(ErrorCode::corrupt_file, "safetensors", "{}: weight_map is missing or not an object",
         index.string());
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string())
      fail(ErrorCode::corrupt_file, "safetensors", "{}: the file of tensor {} is not a string",
           index.string(), tensor);
    check_plain_name(file.get_ref<const std::string&>(), index);
    names.insert(file.get<std::string>());
  }
  std::vector<fs::path> files;
  for (const std::string& name : names) {
    files.push_back(folder / name);
    if (!fs::exists(files.back()))
      fail(ErrorCode::not_found, "safetensors", "{}: the shard {} is missing", index.string(),
           files.back().string());
  }
  return files;
}

// model-00002-of-00003.safetensors without an index: every part must be there.
void check_complete_shards(const std::vector<fs::path>& files) {
  for (const fs::path& file : files) {
    const std::string stem = file.stem().string();
    const auto of = stem.rfind("-of-");
    if (of == std::string::npos) continue;
    const std::string digits = stem.substr(of + 4);
    if (digits.empty() || digits.size() > 6 ||
        !std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return c >= '0' && c <= '9'; }))
      continue;
    const auto same_set = [&](const fs::path& other) {
      return other.stem().string().ends_with("-of-" + digits);
    };
    const auto found = std::count_if(files.begin(), files.end(), same_set);
    if (found != std::stol(digits))
      fail(ErrorCode::not_found, "safetensors", "{}: {} of {} shards are there", file.string(), found,
           digits);
  }
}

}  // namespace

std::vector<fs::path> safetensors_files(const fs::path& folder) {
  const fs::path index = folder / "model.safetensors.index.json";
  std::vector<fs::path> files;
  if (fs::exists(index)) {
    files = indexed_files(folder, index);
  } else {
    for (const auto& item : fs::directory_iterator(folder)) {
      const std::string name = item.path().filename().string();
      if (name.starts_with("model") && name.ends_with(".safetensors")) files.push_back(item.path());
    }
    std::sort(files.begin(), files.end());
    check_complete_shards(files);
  }
  if (files.empty())
    fail(ErrorCode::not_found, "safetensors", "{}: no model*.safetensors file", folder.string());
  return files;
}

std::vector<TensorEntry> read_safetensors_folder(const fs::path& folder) {
  std::vector<TensorEntry> all;
  std::map<std::string, std::string> first_file;
  for (const fs::path& path : safetensors_files(folder)) {
    for (TensorEntry& entry : read_safetensors(std::make_shared<const FileMap>(path))) {
      const auto [at, is_new] = first_file.emplace(entry.name, path.string());
      if (!is_new)
        fail(ErrorCode::corrupt_file, "safetensors", "{} is also in {}", describe(entry), at->second);
      all.push_back(std::move(entry));
    }
  }
  return all;
}

}  // namespace godwit::checkpoint
