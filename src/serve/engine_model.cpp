#include "serve/engine_model.h"

#include <algorithm>
#include <array>
#include <optional>

#include "decode/engine.h"
#include "models/model_bundle.h"
#include "serve/encoder_model.h"
#include "serve/engine_adapter.h"
#include "serve/engine_embedder.h"

namespace godwit::serve {
namespace {

namespace fs = std::filesystem;

struct EngineModel {
  EngineModel(const EngineModelOptions& options, const Log& log)
      : engine(options.model, log, options.engine),
        generator(engine),
        model(describe(engine, options.aliases, options.created)),
        face{model, generator} {
    if (const auto pooling = decoder_pooling(options.model.path, options.pooling))
      face.embedder = &embedder.emplace(engine, *pooling, options.takes_token_ids);
  }

  decode::Engine engine;
  EngineGenerator generator;
  ServedModel model;
  std::optional<EngineEmbedder> embedder;
  LoadedModel face;
};

bool holds_weights(const fs::path& file) {
  constexpr std::array<std::string_view, 2> kEndings = {".safetensors", ".gguf"};
  const std::string ending = file.extension().string();
  return std::ranges::find(kEndings, ending) != kEndings.end();
}

}  // namespace

std::shared_ptr<const LoadedModel> open_engine_model(const EngineModelOptions& options, const Log& log) {
  if (options.is_encoder)
    return open_encoder_model(options.model, options.aliases, options.created, options.takes_token_ids, log);
  const auto opened = std::make_shared<EngineModel>(options, log);
  return {opened, &opened->face};
}

std::uint64_t weight_bytes(const fs::path& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return fs::file_size(path, error);
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (!entry.is_regular_file(error) || !holds_weights(entry.path())) continue;
    const auto size = entry.file_size(error);
    if (!error) bytes += size;
  }
  return bytes;
}

}  // namespace godwit::serve
