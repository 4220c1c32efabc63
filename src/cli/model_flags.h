// The flags that say which model to open and how: shared by every verb that runs one.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "cli/command.h"
#include "models/model_bundle.h"
#include "models/model_options.h"

namespace godwit::cli {

struct KvFlags {
  std::string kv = "dense";
  std::optional<int> start;

  // --kv, --kv-start. The object must outlive the parse.
  void add_to(CLI::App& verb);
  // Error{unsupported} for a codec that does not exist, Error{invalid_argument} for a start without a codec.
  cache::KvPolicy policy() const;
};

struct ModelFlags {
  std::string model = "smollm2";
  std::string math = "auto";
  KvFlags kv;
  std::optional<std::string> activations;       // int8 or f32
  std::optional<std::string> quantize_on_load;  // q8 or q4
  std::string plan = "auto";
  std::string compile = "auto";
  std::optional<int> context_length;
  std::optional<int> threads;
  std::string chat_template;
  std::optional<std::string> packed_cache;  // a folder, or off

  // -m, --math, --threads, --activations, --kv, --kv-start, --quantize-on-load, --plan, --packed-cache, --compile, --ctx;
  // `with_chat` adds --chat-template. The object must outlive the parse.
  void add_to(CLI::App& verb, bool with_chat);
  // The same without -m.
  void add_settings_to(CLI::App& verb, bool with_chat);
  // Finds the model, reads GODWIT_CPU_LEVEL and checks the rest. Throws Error: {invalid_argument} for an unknown level,
  // {unsupported} for one that this machine cannot run. Opens nothing.
  models::ModelOptions options(const CommandContext& context) const;
};

std::string_view name_of(NumericMode mode);
// For people: "native", "native, f32 activations", "reference".
std::string arithmetic_of(const models::ModelBundle& model);
// "generated" where a plan serves the steps.
std::string specialization_of(const models::ModelBundle& model);
// "int8", "f32"; null in `reference`.
Json activations_of(const models::ModelBundle& model);
// What compiled steps served so far; null without them. On the engine thread.
Json compiled_of(const models::ModelBundle& model);
// "affine:4:64", "affine:4:64 from token 100".
std::string name_of(const cache::KvPolicy& kv);

}  // namespace godwit::cli
