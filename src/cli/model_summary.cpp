#include "cli/model_summary.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "checkpoint/config.h"
#include "checkpoint/gguf.h"
#include "cli/profile_view.h"
#include "models/opening.h"

namespace godwit::cli {
namespace {

namespace fs = std::filesystem;

void read_folder(ModelSummary& summary, const models::Catalogue& catalogue) {
  const fs::path& folder = summary.model.path;
  summary.architecture = summary.model.model_type;
  if (!summary.architecture.empty())
    catalogue.registry.check_type(summary.architecture, (folder / "config.json").string());
  const auto config = checkpoint::read_config(folder, catalogue.registry.dialects());
  summary.context = config.max_position_embeddings;
  summary.quantization =
      config.quantization.defaults() ? config.quantization.defaults()->text() : config.dtype;
}

// The format that holds most bytes: a "Q4_K_M" file mixes several, and its name may lie.
std::string main_format(const checkpoint::GgufFile& file) {
  std::map<std::string_view, std::uint64_t> bytes;
  for (const auto& tensor : file.tensors) bytes[checkpoint::info(tensor.format).name] += tensor.size;
  const auto most = std::max_element(bytes.begin(), bytes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? "" : std::string(most->first);
}

void read_gguf_file(ModelSummary& summary) {
  const auto file = checkpoint::open_gguf(summary.model.path);
  summary.architecture = file.metadata.string("general.architecture").value_or("");
  summary.quantization = main_format(file);
  if (const auto length = file.metadata.integer(summary.architecture + ".context_length");
      length && std::in_range<int>(*length))
    summary.context = static_cast<int>(*length);
}

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

ModelSummary summarise(const hub::LocalModel& model, const models::Catalogue& catalogue) {
  ModelSummary summary;
  summary.model = model;
  try {
    if (model.format == hub::ModelFormat::gguf)
      read_gguf_file(summary);
    else
      read_folder(summary, catalogue);
    summary.profile = models::prepare(model.path, catalogue).profile;
  } catch (const Error& e) {
    summary.refused = e.what();
  }
  return summary;
}

Json json_of(const ModelSummary& summary) {
  return {{"id", summary.model.id},
          {"size", summary.model.bytes},
          {"format", summary.model.format == hub::ModelFormat::gguf ? "gguf" : "safetensors"},
          {"architecture", or_null(summary.architecture)},
          {"quantization", or_null(summary.quantization)},
          {"context", summary.context ? Json(*summary.context) : Json(nullptr)},
          {"revision", or_null(summary.model.revision)},
          {"path", summary.model.path.string()},
          {"profile", summary.profile ? json_of(*summary.profile) : Json(nullptr)},
          {"refused", or_null(summary.refused)}};
}

}  // namespace godwit::cli
