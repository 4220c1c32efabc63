#include "checkpoint/checkpoint.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/gguf.h"
#include "checkpoint/gguf_model.h"
#include "checkpoint/safetensors.h"

namespace godwit::checkpoint {
namespace {

namespace fs = std::filesystem;

bool ends_with_any(const fs::path& folder, std::string_view suffix) {
  for (const auto& item : fs::directory_iterator(folder))
    if (item.path().filename().string().ends_with(suffix)) return true;
  return false;
}

// GGUF repositories often carry the config.json of the model they were made from; the file then describes
// itself.
bool is_described_by_config(const fs::path& folder) {
  return fs::exists(folder / "config.json") &&
         (ends_with_any(folder, ".safetensors") || !ends_with_any(folder, ".gguf"));
}

// The GGUF model of a folder: the only one there, or the first part of the only split one.
fs::path gguf_in_folder(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& item : fs::directory_iterator(folder)) {
    const std::string name = item.path().filename().string();
    const bool is_later_part =
        name.find("-of-") != std::string::npos && name.find("-00001-of-") == std::string::npos;
    if (name.ends_with(".gguf") && !name.starts_with("mmproj") && !is_later_part)
      found.push_back(item.path());
  }
  if (found.empty())
    fail(ErrorCode::not_found, "checkpoint", "{}: neither config.json nor a .gguf file is there",
         folder.string());
  if (found.size() > 1)
    fail(ErrorCode::invalid_argument, "checkpoint", "{}: holds {} .gguf files; name one of them",
         folder.string(), found.size());
  return found[0];
}

}  // namespace

Checkpoint Checkpoint::open(const fs::path& path, const Dialects& dialects) {
  if (!fs::exists(path)) fail(ErrorCode::not_found, "checkpoint", "{}: does not exist", path.string());
  Checkpoint checkpoint;
  checkpoint.path_ = path;
  if (fs::is_directory(path)) {
    if (is_described_by_config(path)) {
      checkpoint.config_ = read_config(path, dialects);
      return checkpoint;
    }
    checkpoint.path_ = gguf_in_folder(path);
  }
  auto file = std::make_shared<GgufFile>(open_gguf(checkpoint.path_));
  checkpoint.config_ = gguf_config(*file, dialects);
  checkpoint.gguf_dialect_ = gguf_dialect(file->metadata, dialects).gguf;
  checkpoint.gguf_tokenizer_ = take_gguf_tokenizer(file->metadata);
  checkpoint.gguf_chat_template_ = file->metadata.string("tokenizer.chat_template");
  checkpoint.gguf_ = std::move(file);
  return checkpoint;
}

std::shared_ptr<WeightStore> Checkpoint::weights(const WeightRules& rules) const {
  if (!gguf_)
    return std::make_shared<WeightStore>(read_safetensors_folder(path_), config_.quantization, path_.string(),
                                         rules);
  return std::make_shared<WeightStore>(gguf_tensors(*gguf_, *gguf_dialect_, config_), QuantizationMap{},
                                       path_.string(), rules, gguf_dialect_->norms_include_one);
}

}  // namespace godwit::checkpoint
