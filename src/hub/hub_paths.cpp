#include "hub/hub_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>

namespace godwit::hub {
namespace fs = std::filesystem;
namespace {

// Other tools expand "~/" themselves, so a value written for them must mean the same here.
fs::path expand_home(const std::string& value, const Environment& environment) {
  if (!value.starts_with("~/")) return value;
  const auto home = environment.get("HOME");
  return home ? fs::path(*home) / value.substr(2) : fs::path(value);
}

fs::path hub_home(const Environment& environment) {
  if (const auto home = environment.get("HF_HOME")) return expand_home(*home, environment);
  return environment.user_cache_folder() / "huggingface";
}

bool is_repo_part(std::string_view part) {
  if (part.empty() || part.size() > 96) return false;
  const auto edge = [](char c) { return c == '.' || c == '-'; };
  if (edge(part.front()) || edge(part.back())) return false;
  if (part.find("--") != part.npos || part.find("..") != part.npos) return false;
  return std::all_of(part.begin(), part.end(), [](unsigned char c) {
    return (c < 128 && std::isalnum(c)) || c == '-' || c == '_' || c == '.';
  });
}

bool is_repo(std::string_view repo) {
  const auto slash = repo.find('/');
  if (slash == repo.npos) return is_repo_part(repo);
  return is_repo_part(repo.substr(0, slash)) && is_repo_part(repo.substr(slash + 1));
}

std::string trimmed(std::string text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text.empty() && is_space(text.back())) text.pop_back();
  while (!text.empty() && is_space(text.front())) text.erase(text.begin());
  return text;
}

}  // namespace

fs::path hub_cache_root(const Environment& environment) {
  if (const auto root = environment.get("HF_HUB_CACHE")) return expand_home(*root, environment);
  return hub_home(environment) / "hub";
}

fs::path own_models_folder(const Environment& environment) {
  return environment.godwit_cache_folder() / "models";
}

std::string hub_token(const Environment& environment) {
  if (const auto token = environment.get("HF_TOKEN")) return trimmed(*token);
  const auto named = environment.get("HF_TOKEN_PATH");
  std::ifstream in(named ? expand_home(*named, environment) : hub_home(environment) / "token");
  std::string line;
  std::getline(in, line);
  return trimmed(line);
}

bool is_offline(const Environment& environment) {
  std::string value = environment.get("HF_HUB_OFFLINE").value_or("");
  std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::toupper(c); });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

std::optional<RepoSpec> parse_repo_spec(std::string_view text) {
  RepoSpec spec;
  // The file part may hold anything but a colon, so it is cut first; a revision may hold slashes (refs/pr/1).
  if (const auto colon = text.find(':'); colon != text.npos) {
    spec.file = text.substr(colon + 1);
    text = text.substr(0, colon);
    if (!is_safe_relative_path(spec.file)) return std::nullopt;
  }
  if (const auto at = text.find('@'); at != text.npos) {
    spec.revision = text.substr(at + 1);
    text = text.substr(0, at);
    if (!is_safe_relative_path(spec.revision)) return std::nullopt;
  }
  spec.repo = text;
  if (!is_repo(spec.repo)) return std::nullopt;
  return spec;
}

std::string repo_folder_name(std::string_view repo) {
  std::string name = "models--";
  for (const char c : repo) name += c == '/' ? std::string("--") : std::string(1, c);
  return name;
}

std::optional<std::string> repo_of_folder(std::string_view folder) {
  constexpr std::string_view kPrefix = "models--";
  if (!folder.starts_with(kPrefix)) return std::nullopt;
  std::string repo(folder.substr(kPrefix.size()));
  if (const auto cut = repo.find("--"); cut != repo.npos) repo.replace(cut, 2, "/");
  if (!is_repo(repo)) return std::nullopt;
  return repo;
}

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool is_safe_relative_path(std::string_view path) {
  if (path.empty() || path.size() > 1024) return false;
  for (const unsigned char c : path)
    if (c < 0x20 || c == 0x7f || c == '\\') return false;
  for (std::size_t start = 0; start <= path.size();) {
    const auto end = std::min(path.find('/', start), path.size());
    const auto part = path.substr(start, end - start);
    if (part.empty() || part == "." || part == ".." || part.size() > 255) return false;
    start = end + 1;
  }
  return true;
}

std::optional<SplitName> parse_split_name(std::string_view file, std::string_view extension) {
  constexpr std::string_view kTail = "-00000-of-00000";
  if (!file.ends_with(extension)) return std::nullopt;
  file.remove_suffix(extension.size());
  if (file.size() <= kTail.size()) return std::nullopt;
  const auto tail = file.substr(file.size() - kTail.size());
  SplitName name{.stem = std::string(file.substr(0, file.size() - kTail.size()))};
  for (std::size_t i = 0; i < kTail.size(); ++i) {
    const bool is_digit = tail[i] >= '0' && tail[i] <= '9';
    if (kTail[i] == '0' ? !is_digit : tail[i] != kTail[i]) return std::nullopt;
    if (kTail[i] != '0') continue;
    int& number = i < 6 ? name.part : name.parts;
    number = number * 10 + (tail[i] - '0');
  }
  if (name.part < 1 || name.part > name.parts) return std::nullopt;
  return name;
}

std::string split_part_name(const SplitName& name, int part) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", name.stem, part, name.parts);
}

}  // namespace godwit::hub
