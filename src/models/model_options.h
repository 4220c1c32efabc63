// What a caller asks of an opened model. Part of its identity: two models with equal options answer with
// equal bytes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/numeric_mode.h"
#include "base/thread_pool.h"
#include "cache/kv_policy.h"
#include "kernels/level.h"

namespace godwit::models {

struct ModelOptions {
  std::filesystem::path path;  // a folder with config.json, or a .gguf file: resolved already
  std::string id;              // the name shown to clients
  std::optional<NumericMode> mode = NumericMode::reference;  // absent: native where it can serve the model
  cache::KvPolicy kv;
  kernels::Level level = kernels::best_level();  // of the native kernels; every level has the same bits
  int threads = cpu_allowance();
  std::optional<int> context_length;                   // --ctx: lowers the model's own limit
  std::optional<std::filesystem::path> chat_template;  // --chat-template
};

}  // namespace godwit::models
