// Every model on this machine that can be named without a path, and everything that looks like one but is
// broken.
//
// Sources, in this order: our own folder (hub_paths.h: NAME/ with one .gguf or a config.json, or NAME.gguf)
// and the Hugging Face cache. Of a cached repository the revision `main` counts, else its newest complete
// snapshot. Nothing here writes, so a read-only cache works.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/environment.h"

namespace godwit::hub {

enum class ModelFormat { safetensors, gguf };

struct LocalModel {
  std::string id;  // smollm2, ORG/NAME or, where a repository holds several .gguf files, ORG/NAME:FILE.gguf
  std::filesystem::path path;  // folder (safetensors) or file (gguf)
  ModelFormat format = ModelFormat::safetensors;
  std::string model_type;   // safetensors only
  std::uint64_t bytes = 0;  // weight files
  std::string revision;     // commit; empty in our own folder
};

struct ModelProblem {
  std::string id;
  std::filesystem::path path;
  std::string what;
};

struct ModelListing {
  std::vector<LocalModel> models;  // by source, then id
  std::vector<ModelProblem> problems;
};

ModelListing list_local_models(const Environment& environment);

// The two halves, for callers with roots of their own (--cache-dir). A missing root is an empty listing.
ModelListing list_hub_cache(const std::filesystem::path& root);
ModelListing list_own_folder(const std::filesystem::path& folder);

// Snapshot folder of `repo` at `revision` ("" = main, else the newest complete one); empty path when it is
// not there. A revision is a branch, a tag, refs/pr/N, a commit or at least 7 digits of one.
std::filesystem::path find_snapshot(const std::filesystem::path& root, const std::string& repo,
                                    const std::string& revision);

}  // namespace godwit::hub
