// `godwit scan DIR`: every checkpoint below a folder, how it would be opened and what is promised about it,
// or why it would be refused. No weight is read.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/config.h"
#include "cli/command.h"
#include "cli/model_summary.h"
#include "cli/profile_view.h"
#include "cli/table.h"
#include "hub/hub_paths.h"
#include "hub/snapshot_check.h"

namespace godwit::cli {
namespace {

namespace fs = std::filesystem;

struct ScanFlags {
  std::string folder;
  bool json = false;
};

struct Found {
  hub::LocalModel model;
  std::vector<std::string> problems;  // of its files: missing shards, no tokenizer, ...
};

struct Scanned {
  ModelSummary summary;
  std::vector<std::string> problems;
};

bool is_gguf_model(const fs::path& file) {
  const std::string name = file.filename().string();
  if (file.extension() != ".gguf" || name.starts_with("mmproj")) return false;
  const auto split = hub::parse_split_name(name);
  return !split || split->part == 1;
}

// A config.json beside a model that describes a part of it, as 1_Pooling/config.json does: an object without
// model_type, and no weights. A file that cannot be read is no part but a broken model.
bool is_part(const fs::path& folder, const hub::FolderCheck& check) {
  if (!check.has_config || !check.model_type.empty() || check.bytes > 0) return false;
  try {
    return !checkpoint::read_model_type(folder);
  } catch (const Error&) {
    return false;
  }
}

std::string id_below(const fs::path& root, const fs::path& path) {
  const fs::path relative = path.lexically_relative(root);
  return relative == "." ? fs::absolute(root).lexically_normal().filename().string() : relative.string();
}

// A folder with a config.json; where it holds no safetensors, its .gguf files in place of it.
void add_folder(const fs::path& root, const fs::path& folder, std::vector<Found>& found) {
  std::error_code error;
  std::vector<fs::path> ggufs;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (is_gguf_model(entry.path())) ggufs.push_back(entry.path());
  std::ranges::sort(ggufs);
  hub::FolderCheck check = hub::check_folder(folder);
  if (check.has_config && !is_part(folder, check) && (ggufs.empty() || check.bytes > 0)) {
    check.problems.insert(check.problems.end(), check.warnings.begin(), check.warnings.end());
    found.push_back(
        {{id_below(root, folder), folder, hub::ModelFormat::safetensors, check.model_type, check.bytes, ""},
         std::move(check.problems)});
  }
  for (const fs::path& file : ggufs)
    found.push_back(
        {{id_below(root, file), file, hub::ModelFormat::gguf, "", fs::file_size(file, error), ""}, {}});
}

std::vector<Found> checkpoints_below(const fs::path& root) {
  std::vector<fs::path> folders = {root};
  std::error_code error;
  constexpr auto kSkip = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator at(root, kSkip, error), end; !error && at != end; at.increment(error))
    if (at->is_directory(error)) folders.push_back(at->path());
  std::ranges::sort(folders);
  std::vector<Found> found;
  for (const fs::path& folder : folders) add_folder(root, folder, found);
  return found;
}

std::vector<Scanned> scan(const fs::path& root) {
  if (!fs::exists(root)) fail(ErrorCode::not_found, "scan", "{}: does not exist", root.string());
  if (!fs::is_directory(root))
    fail(ErrorCode::invalid_argument, "scan", "{}: is not a folder", root.string());
  const models::Catalogue catalogue = models::Catalogue::builtin();
  std::vector<Scanned> all;
  for (Found& found : checkpoints_below(root))
    all.push_back({summarise(found.model, catalogue), std::move(found.problems)});
  return all;
}

void print_people(const std::vector<Scanned>& all, Output& out) {
  std::vector<std::vector<std::string>> rows = {{"ID", "ARCHITECTURE"}};
  for (const std::string& title : profile_titles()) rows[0].push_back(title);
  for (const Scanned& scanned : all) {
    if (!scanned.summary.profile) continue;
    rows.push_back({scanned.summary.model.id, scanned.summary.architecture});
    for (std::string& cell : profile_cells(*scanned.summary.profile)) rows.back().push_back(std::move(cell));
  }
  if (rows.size() > 1) print_table(rows, out);
  if (all.empty()) out.print("no checkpoint below this folder\n");
  for (const Scanned& scanned : all) {
    if (!scanned.summary.refused.empty())
      out.print("refused: {}: {}\n", printable(scanned.summary.model.id), printable(scanned.summary.refused));
    for (const std::string& problem : scanned.problems)
      out.print("broken: {}: {}\n", printable(scanned.summary.model.id), printable(problem));
  }
}

void print_json(const std::vector<Scanned>& all, Output& out) {
  Json list = Json::array();
  for (const Scanned& scanned : all) {
    Json entry = json_of(scanned.summary);
    entry["problems"] = scanned.problems;
    list.push_back(std::move(entry));
  }
  out.print("{}\n", dump_json({{"models", list}}, 2));
}

int run_scan(const ScanFlags& flags, CommandContext& context) {
  const std::vector<Scanned> all = scan(flags.folder);
  if (flags.json)
    print_json(all, context.out);
  else
    print_people(all, context.out);
  return kExitDone;
}

}  // namespace

void add_scan(CLI::App& app, CommandContext& context) {
  const auto flags = std::make_shared<ScanFlags>();
  auto* verb = app.add_subcommand("scan", "Show how the models below a folder would be opened");
  verb->add_option("DIR", flags->folder, "The folder")->required();
  verb->add_flag("--json", flags->json, "Print JSON");
  verb->callback(
      [flags, &context] { context.action = [flags, &context] { return run_scan(*flags, context); }; });
}

}  // namespace godwit::cli
