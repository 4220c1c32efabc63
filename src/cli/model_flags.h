// The flags that say which model to open and how: shared by every verb that runs one.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "cli/command.h"
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
  std::optional<int> context_length;
  std::optional<int> threads;
  std::string chat_template;

  // -m, --math, --threads, --kv, --kv-start, --ctx; `with_chat` adds --chat-template. The object must outlive
  // the parse.
  void add_to(CLI::App& verb, bool with_chat);
  // Finds the model and checks the rest. Throws Error; opens nothing.
  models::ModelOptions options(const CommandContext& context) const;
};

void add_math_flags(CLI::App& verb, std::string& math, std::optional<int>& threads);
// Puts what these flags and GODWIT_CPU_LEVEL say into `options`. Error{invalid_argument} for an unknown
// level, Error{unsupported} for one that this machine cannot run.
void apply_math_flags(const std::string& math, std::optional<int> threads, const Environment& environment,
                      models::ModelOptions& options);
std::string_view name_of(NumericMode mode);
// "affine:4:64", "affine:4:64 from token 100".
std::string name_of(const cache::KvPolicy& kv);

}  // namespace godwit::cli
