#include "cli/model_summary.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "checkpoint/config.h"
#include "checkpoint/gguf.h"
#include "checkpoint/gguf_model.h"
#include "models/registry.h"

namespace godwit::cli {
namespace {

void read_folder(ModelSummary& summary) {
  summary.architecture = summary.model.model_type;
  const auto config = checkpoint::read_config(summary.model.path);
  summary.context = config.max_position_embeddings;
  summary.quantization =
      config.quantization.defaults() ? config.quantization.defaults()->text() : config.dtype;
  models::Registry::builtin().find(config.model_type, config.origin);
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
  models::Registry::builtin().find(checkpoint::gguf_architecture(file.metadata).model_type,
                                   summary.model.path.string());
}

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

ModelSummary summarise(const hub::LocalModel& model) {
  ModelSummary summary{.model = model, .architecture = {}, .quantization = {}, .context = {}, .refused = {}};
  try {
    if (model.format == hub::ModelFormat::gguf)
      read_gguf_file(summary);
    else
      read_folder(summary);
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
          {"refused", or_null(summary.refused)}};
}

}  // namespace godwit::cli
