// The flags that say which model to open and how: shared by every verb that runs one.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cli/command.h"
#include "models/model_options.h"

namespace godwit::cli {

struct ModelFlags {
  std::string model = "smollm2";
  std::string math = "reference";
  std::string kv = "dense";
  std::optional<int> kv_start;
  std::optional<int> context_length;
  std::string chat_template;

  // -m, --math, --kv, --kv-start, --ctx; `with_chat` adds --chat-template. The object must outlive the parse.
  void add_to(CLI::App& verb, bool with_chat);
  // Finds the model and checks the rest. Throws Error; opens nothing.
  models::ModelOptions options(const CommandContext& context) const;
};

}  // namespace godwit::cli
