// What a caller asks of an opened model. Part of its identity: two models with equal options answer with
// equal bytes.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/numeric_mode.h"
#include "base/thread_pool.h"
#include "cache/kv_policy.h"
#include "kernels/activations.h"
#include "kernels/dequant_blocks.h"
#include "kernels/level.h"

namespace godwit::models {

struct Catalogue;

// Whether steps run by a plan that was recorded at opening (models/decode_plan.h). No part of the identity: a plan has
// the bits of the graph that it was recorded from.
enum class PlanUse {
  automatic,  // where there is one
  off,
  required,  // without one the model is not opened
};

// Whether steps of one token replay a graph that was recorded once (models/compiled_step.h); `reference` only.
enum class Compile {
  automatic,  // on a GPU
  off,
  on,        // what cannot be recorded is run as ever
  required,  // what cannot be recorded is an error
};

struct ModelOptions {
  std::filesystem::path path;  // a folder with config.json, or a .gguf file: resolved already
  std::string id;              // the name shown to clients
  std::optional<NumericMode> mode = NumericMode::reference;  // absent: native where it can serve the model
  cache::KvPolicy kv;
  kernels::Level level = kernels::best_level();  // of the native kernels; every
                                                 // level has the same bits
  int threads = cpu_allowance();
  // What meets quantized weights, native only; absent: int8.
  std::optional<kernels::ActivationForm> activations;
  // Matrices of numbers (F32, F16, BF16) are quantized to this when they are loaded: Q8_0 or Q4_0, native only.
  std::optional<kernels::BlockFormat> quantize_on_load;
  PlanUse plan = PlanUse::automatic;  // native only
  // Packed weights of native mode are kept here from start to start (checkpoint/packed_cache.h). Absent: nowhere.
  std::optional<std::filesystem::path> packed_folder;
  Compile compile = Compile::automatic;
  std::optional<int> context_length;                   // --ctx: lowers the model's own limit
  std::optional<std::filesystem::path> chat_template;  // --chat-template
  bool with_text = true;  // false: token ids alone; no tokenizer and no template are read, no end ids of theirs known
  std::shared_ptr<const Catalogue> catalogue;          // of the caller; absent: Catalogue::builtin()
  std::optional<std::string> artifact;                 // names the exact checkpoint; absent: by its path
};

// "int8", "f32".
constexpr std::string_view name_of(kernels::ActivationForm form) {
  return form == kernels::ActivationForm::f32 ? "f32" : "int8";
}

}  // namespace godwit::models
