#include "hub/snapshot_check.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <set>

#include "base/checked.h"
#include "base/error.h"
#include "base/json.h"
#include "base/python_json.h"
#include "hub/hub_paths.h"

namespace godwit::hub {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kMaxHeader = 256ull << 20;

std::uint64_t little_endian(const std::array<unsigned char, 8>& bytes) {
  std::uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = value << 8 | bytes[static_cast<std::size_t>(i)];
  return value;
}

// The largest second number of all "data_offsets":[a,b]. An unescaped quote cannot stand inside a JSON
// string, so the quoted key is found by plain search; a full parse of every header would make listing a large
// cache slow.
std::uint64_t last_tensor_end(const std::string& header) {
  constexpr std::string_view kKey = "\"data_offsets\"";
  std::uint64_t last = 0;
  for (auto at = header.find(kKey); at != header.npos; at = header.find(kKey, at + 1)) {
    if (at > 0 && header[at - 1] == '\\') continue;
    const auto comma = header.find(',', at);
    if (comma == header.npos) break;
    const auto digits = header.find_first_not_of(" \t\r\n", comma + 1);
    if (digits == header.npos) break;
    std::uint64_t end = 0;
    std::from_chars(header.data() + digits, header.data() + header.size(), end);
    last = std::max(last, end);
  }
  return last;
}

// Follows links; a dangling link, a loop and an unreadable target all come back as text.
std::string why_not_a_file(const fs::path& path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found)
    return fs::is_symlink(fs::symlink_status(path, error)) ? "is a link to a file that does not exist"
                                                           : "is missing";
  if (error) return error.message();
  if (!fs::is_regular_file(status)) return "is not a file";
  if (fs::file_size(path, error) == 0 && !error) return "is empty";
  return error ? error.message() : "";
}

void check_config(const fs::path& folder, FolderCheck& check) {
  const fs::path path = folder / "config.json";
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) return;
  check.has_config = true;
  if (const auto why = why_not_a_file(path); !why.empty()) {
    check.problems.push_back("config.json " + why);
    return;
  }
  try {
    const Json config = read_python_json_file(path);
    const auto type = config.is_object() ? config.find("model_type") : config.end();
    if (type != config.end() && type->is_string()) check.model_type = type->get<std::string>();
    if (check.model_type.empty()) check.problems.push_back("config.json names no model_type");
  } catch (const Error& e) {
    check.problems.push_back(e.what());
  }
}

void check_weight_file(const fs::path& folder, const std::string& name, FolderCheck& check) {
  const fs::path path = folder / name;
  if (const auto why = why_not_a_file(path); !why.empty()) {
    check.problems.push_back(name + " " + why);
    return;
  }
  try {
    const auto size = fs::file_size(path);
    const auto wanted = announced_safetensors_size(path);
    check.bytes += size;
    if (size != wanted)
      check.problems.push_back(
          fmt::format("{} has {} bytes where its header announces {}", name, size, wanted));
  } catch (const Error& e) {
    check.problems.push_back(e.what());
  } catch (const fs::filesystem_error& e) {
    check.problems.push_back(e.what());
  }
}

std::set<std::string> shards_of_index(const fs::path& index, FolderCheck& check) {
  std::set<std::string> shards;
  try {
    const Json json = read_json_file(index);
    const auto map = json.is_object() ? json.find("weight_map") : json.end();
    if (map == json.end() || !map->is_object() || map->empty())
      check.problems.push_back(index.filename().string() + " has no weight_map");
    else
      for (const auto& [tensor, shard] : map->items()) {
        const auto name = shard.is_string() ? shard.get<std::string>() : std::string();
        if (is_safe_relative_path(name))
          shards.insert(name);
        else
          check.problems.push_back(fmt::format("{} names \"{}\", which is not a file of this folder",
                                               index.filename().string(), name));
      }
  } catch (const Error& e) {
    check.problems.push_back(e.what());
  }
  return shards;
}

bool has_tokenizer(const fs::path& folder, const std::set<std::string>& names) {
  const auto usable = [&](const std::string& name) { return why_not_a_file(folder / name).empty(); };
  if (usable("tokenizer.json") || usable("tokenizer.model")) return true;
  if (usable("vocab.json") && usable("merges.txt")) return true;
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name.ends_with(".tiktoken"); });
}

// Without an index the names alone say how many there should be.
void count_shards(const std::set<std::string>& files, FolderCheck& check) {
  int there = 0, wanted = 0;
  for (const std::string& file : files)
    if (const auto shard = parse_split_name(file, ".safetensors")) {
      ++there;
      wanted = shard->parts;
    }
  if (there != wanted)
    check.problems.push_back(fmt::format("{} of {} shards are there, and no index", there, wanted));
}

void check_weights(const fs::path& folder, const std::set<std::string>& names, FolderCheck& check) {
  std::set<std::string> shards;
  if (names.contains("model.safetensors.index.json")) {
    shards = shards_of_index(folder / "model.safetensors.index.json", check);
  } else {
    for (const auto& name : names)
      if (name.ends_with(".safetensors")) shards.insert(name);
    count_shards(shards, check);
  }
  for (const auto& shard : shards) check_weight_file(folder, shard, check);
  if (shards.empty() && check.problems.empty()) check.problems.push_back("holds no .safetensors file");
}

// A split file counts once, by its first part, and only with all its parts.
void check_ggufs(const fs::path& folder, const std::set<std::string>& names, FolderCheck& check) {
  for (const auto& name : names) {
    if (!name.ends_with(".gguf")) continue;
    const auto split = parse_split_name(name);
    if (split && split->part != 1 && names.contains(split_part_name(*split, 1))) continue;
    bool is_complete = true;
    for (int part = 1; part <= (split ? split->parts : 1); ++part) {
      const std::string file = split ? split_part_name(*split, part) : name;
      const auto why = why_not_a_file(folder / file);
      if (why.empty()) continue;
      is_complete = false;
      check.problems.push_back(file + " " + why);
    }
    if (is_complete) check.ggufs.push_back(name);
  }
}

// Plain iteration with error codes: one unreadable entry must not end the listing of all others.
std::set<std::string> names_in(const fs::path& folder, FolderCheck& check) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    names.insert(it->path().filename().string());
  if (error) check.problems.push_back(error.message());
  return names;
}

}  // namespace

std::uint64_t announced_safetensors_size(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(ErrorCode::io, "safetensors", "{}: cannot open", path.string());
  std::array<unsigned char, 8> head{};
  in.read(reinterpret_cast<char*>(head.data()), head.size());
  if (in.gcount() != 8)
    fail(ErrorCode::corrupt_file, "safetensors", "{}: ends inside its first 8 bytes", path.string());
  const auto length = little_endian(head);
  if (length > kMaxHeader)
    fail(ErrorCode::corrupt_file, "safetensors", "{}: header of {} bytes", path.string(), length);
  // The length is only believed as far as the file goes: a crafted one must not make us reserve memory.
  std::error_code error;
  if (const auto size = fs::file_size(path, error); error || length > size - 8)
    fail(ErrorCode::corrupt_file, "safetensors", "{}: ends inside its header of {} bytes", path.string(),
         length);
  std::string header(length, '\0');
  in.read(header.data(), static_cast<std::streamsize>(length));
  if (static_cast<std::uint64_t>(in.gcount()) != length)
    fail(ErrorCode::corrupt_file, "safetensors", "{}: ends inside its header of {} bytes", path.string(),
         length);
  return checked_add<std::uint64_t>(8 + length, last_tensor_end(header), path.string());
}

FolderCheck check_folder(const fs::path& folder) {
  FolderCheck check;
  const auto names = names_in(folder, check);
  const bool has_gguf =
      std::any_of(names.begin(), names.end(), [](const auto& name) { return name.ends_with(".gguf"); });
  const bool has_safetensors = std::any_of(names.begin(), names.end(), [](const auto& name) {
    return name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json");
  });
  if (has_gguf && !has_safetensors) {
    check_ggufs(folder, names, check);
    return check;
  }
  check_config(folder, check);
  if (!check.has_config) check.problems.push_back("has no config.json");
  check_weights(folder, names, check);
  if (!has_tokenizer(folder, names)) check.warnings.push_back("has no tokenizer");
  return check;
}

}  // namespace godwit::hub
