// A model with an engine of its own, as the pool loads it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "decode/engine_options.h"
#include "models/model_options.h"
#include "serve/model_directory.h"

namespace godwit::serve {

struct EngineModelOptions {
  models::ModelOptions model;
  decode::EngineOptions engine;
  std::vector<std::string> aliases = {};
  std::int64_t created = 0;    // unix seconds
  bool is_encoder = false;     // a text encoder, which embeds and does nothing else
  std::string pooling = "auto";  // of a model that generates: see decoder_pooling()
  bool takes_token_ids = false;  // for embeddings
};

// Opens the model; returns when its engine is ready. Throws what opening throws. Destroying the last pointer
// ends the engine and gives the memory back.
std::shared_ptr<const LoadedModel> open_engine_model(const EngineModelOptions& options, const Log& log);

// Bytes of the weight files at `path`, a folder or a file; 0 where there are none.
std::uint64_t weight_bytes(const std::filesystem::path& path);

}  // namespace godwit::serve
