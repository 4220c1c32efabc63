#include "hub/local_models.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "hub/hub_paths.h"
#include "hub/snapshot_check.h"

namespace godwit::hub {
namespace fs = std::filesystem;
namespace {

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    entries.push_back(it->path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

std::uint64_t size_of(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : size;
}

// All parts of a split file together.
std::uint64_t gguf_bytes(const fs::path& path) {
  const auto split = parse_split_name(path.filename().string());
  if (!split) return size_of(path);
  std::uint64_t bytes = 0;
  for (int part = 1; part <= split->parts; ++part)
    bytes += size_of(path.parent_path() / split_part_name(*split, part));
  return bytes;
}

std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
  return line;
}

// Adds what one folder offers under `id`. Returns false when nothing in it can be opened.
bool add_folder(const std::string& id, const fs::path& folder, const std::string& revision,
                ModelListing& listing) {
  const FolderCheck check = check_folder(folder);
  for (const auto& problem : check.problems) listing.problems.push_back({id, folder, problem});
  for (const auto& warning : check.warnings) listing.problems.push_back({id, folder, warning});
  if (check.is_safetensors_model() && check.warnings.empty()) {
    listing.models.push_back({id, folder, ModelFormat::safetensors, check.model_type, check.bytes, revision});
    return true;
  }
  for (const auto& name : check.ggufs) {
    const auto full_id = check.ggufs.size() == 1 ? id : id + ":" + name;
    listing.models.push_back(
        {full_id, folder / name, ModelFormat::gguf, "", gguf_bytes(folder / name), revision});
  }
  return !check.ggufs.empty();
}

void report_stray_refs(const std::string& repo, const fs::path& folder, ModelListing& listing) {
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder / "refs", error), end; !error && it != end;
       it.increment(error)) {
    if (!it->is_regular_file(error)) continue;
    const auto commit = first_line(it->path());
    if (!is_hex(commit, 40))
      listing.problems.push_back({repo, it->path(), "does not hold a commit of 40 hexadecimal digits"});
    else if (!is_folder(folder / "snapshots" / commit))
      listing.problems.push_back(
          {repo, it->path(), "names commit " + commit + ", which has no snapshot here"});
  }
}

void report_partials(const std::string& repo, const fs::path& folder, ModelListing& listing) {
  for (const auto& blob : entries_of(folder / "blobs"))
    if (blob.extension() == ".incomplete")
      listing.problems.push_back(
          {repo, blob, fmt::format("is a download that stopped after {} bytes", size_of(blob))});
}

std::vector<fs::path> newest_first(const fs::path& snapshots) {
  auto folders = entries_of(snapshots);
  std::erase_if(folders, [](const fs::path& path) { return !is_folder(path); });
  std::stable_sort(folders.begin(), folders.end(), [](const fs::path& a, const fs::path& b) {
    std::error_code error;
    return fs::last_write_time(a, error) > fs::last_write_time(b, error);
  });
  return folders;
}

void list_repo(const std::string& repo, const fs::path& folder, ModelListing& listing) {
  report_stray_refs(repo, folder, listing);
  report_partials(repo, folder, listing);
  const auto main = find_snapshot(folder.parent_path(), repo, "main");
  if (!main.empty()) {
    add_folder(repo, main, main.filename().string(), listing);
    return;
  }
  const auto snapshots = newest_first(folder / "snapshots");
  for (const auto& snapshot : snapshots)
    if (add_folder(repo, snapshot, snapshot.filename().string(), listing)) return;
  if (snapshots.empty()) listing.problems.push_back({repo, folder, "holds no snapshot"});
}

void append(ModelListing& to, ModelListing from) {
  std::move(from.models.begin(), from.models.end(), std::back_inserter(to.models));
  std::move(from.problems.begin(), from.problems.end(), std::back_inserter(to.problems));
}

}  // namespace

fs::path find_snapshot(const fs::path& root, const std::string& repo, const std::string& revision) {
  const fs::path folder = root / repo_folder_name(repo);
  const fs::path snapshots = folder / "snapshots";
  const std::string wanted = revision.empty() ? "main" : revision;
  if (const auto commit = first_line(folder / "refs" / wanted); is_hex(commit, 40))
    return is_folder(snapshots / commit) ? snapshots / commit : fs::path();
  const auto folders = newest_first(snapshots);
  for (const auto& path : folders) {
    if (revision.empty()) {
      const auto check = check_folder(path);
      if (check.problems.empty()) return path;
    } else if (revision.size() >= 7 && path.filename().string().starts_with(revision)) {
      return path;
    }
  }
  // Nothing complete: the newest one lets the caller say what is wrong with it.
  return revision.empty() && !folders.empty() ? folders.front() : fs::path();
}

ModelListing list_hub_cache(const fs::path& root) {
  ModelListing listing;
  for (const auto& folder : entries_of(root)) {
    const auto repo = repo_of_folder(folder.filename().string());
    if (repo && is_folder(folder)) list_repo(*repo, folder, listing);
  }
  return listing;
}

ModelListing list_own_folder(const fs::path& folder) {
  ModelListing listing;
  for (const auto& entry : entries_of(folder)) {
    if (is_folder(entry))
      add_folder(entry.filename().string(), entry, "", listing);
    else if (entry.extension() == ".gguf")
      listing.models.push_back({entry.stem().string(), entry, ModelFormat::gguf, "", size_of(entry), ""});
  }
  return listing;
}

ModelListing list_local_models(const Environment& environment) {
  ModelListing listing = list_own_folder(own_models_folder(environment));
  append(listing, list_hub_cache(hub_cache_root(environment)));
  return listing;
}

}  // namespace godwit::hub
