#include "hub/file_choice.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "hub/hub_paths.h"

namespace godwit::hub {
namespace {

bool matches_any(const std::string& name, const std::vector<std::string>& globs) {
  return std::any_of(globs.begin(), globs.end(), [&](std::string glob) {
    if (glob.ends_with('/')) glob += '*';  // a folder means everything below it
    return fnmatch(glob.c_str(), name.c_str(), 0) == 0;
  });
}

bool is_wanted_by_default(const std::string& name) {
  static constexpr std::array<std::string_view, 6> kEndings = {".safetensors", ".json", ".jinja",
                                                               ".model",       ".txt",  ".tiktoken"};
  static constexpr std::array<std::string_view, 3> kOtherEngines = {"onnx/", "openvino/", "original/"};
  const auto begins = [&](std::string_view folder) { return name.starts_with(folder); };
  const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
  return std::none_of(kOtherEngines.begin(), kOtherEngines.end(), begins) &&
         std::any_of(kEndings.begin(), kEndings.end(), ends);
}

bool has_ending(const std::vector<RepoFile>& files, std::string_view ending) {
  return std::any_of(files.begin(), files.end(),
                     [&](const RepoFile& file) { return file.name.ends_with(ending); });
}

// All parts of a split file, or the one file.
std::vector<RepoFile> with_parts(const std::vector<RepoFile>& files, const std::string& name) {
  const auto split = parse_split_name(name);
  std::vector<RepoFile> parts;
  for (const auto& file : files) {
    const auto other = split ? parse_split_name(file.name) : std::nullopt;
    if (file.name == name || (other && other->stem == split->stem && other->parts == split->parts))
      parts.push_back(file);
  }
  return parts;
}

std::vector<RepoFile> named_file(const std::vector<RepoFile>& files, const std::string& name,
                                 const std::string& repo) {
  auto found = with_parts(files, name);
  const auto is_it = [&](const RepoFile& file) { return file.name == name; };
  if (std::none_of(found.begin(), found.end(), is_it))
    fail(ErrorCode::not_found, "hub", "{} holds no file {}", repo, name);
  return found;
}

std::vector<RepoFile> the_only_gguf(const std::vector<RepoFile>& files, const std::string& repo) {
  std::vector<std::string> names;
  std::string choices;
  for (const auto& file : files) {
    const auto split = parse_split_name(file.name);
    if (!file.name.ends_with(".gguf") || (split && split->part != 1)) continue;
    names.push_back(file.name);
    choices += fmt::format("\n  {}:{}", repo, file.name);
  }
  if (names.size() == 1) return with_parts(files, names[0]);
  fail(ErrorCode::invalid_argument, "hub", "{} holds {} .gguf models; name one of them (or use --include):{}",
       repo, names.size(), choices);
}

}  // namespace

std::vector<RepoFile> choose_files(const std::vector<RepoFile>& files, const FileChoice& choice,
                                   const std::string& repo) {
  if (!choice.file.empty()) return named_file(files, choice.file, repo);
  std::vector<RepoFile> candidates = files;
  std::erase_if(candidates, [&](const RepoFile& file) { return matches_any(file.name, choice.exclude); });
  if (choice.include.empty() && !has_ending(candidates, ".safetensors") && has_ending(candidates, ".gguf"))
    return the_only_gguf(candidates, repo);
  std::erase_if(candidates, [&](const RepoFile& file) {
    return choice.include.empty() ? !is_wanted_by_default(file.name)
                                  : !matches_any(file.name, choice.include);
  });
  if (candidates.empty())
    fail(ErrorCode::not_found, "hub", "{} holds no file that is wanted ({} files in all)", repo,
         files.size());
  if (choice.include.empty() && !has_ending(candidates, ".safetensors"))
    fail(ErrorCode::unsupported, "hub",
         "{} holds neither .safetensors nor .gguf weights; --include fetches other files all the same", repo);
  return candidates;
}

}  // namespace godwit::hub
