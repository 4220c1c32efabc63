// The subcommands of godwit eval, and the text that two of them read.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/command.h"
#include "cli/model_flags.h"
#include "models/model_bundle.h"

namespace godwit::cli {

void add_eval_fidelity(CLI::App& eval, CommandContext& context);
void add_eval_kl(CLI::App& eval, CommandContext& context);
void add_eval_perplexity(CLI::App& eval, CommandContext& context);

// The text of an evaluation, cut into windows of one length.
struct EvalText {
  std::vector<std::vector<int>> windows;  // at least one, each of `size` tokens
  std::size_t size = 0;
  std::size_t prefill = 0;  // tokens of each that are read at once; the others one by one
};

struct EvalTextFlags {
  std::string data;
  std::optional<std::string> tokens;
  int window = 512;
  std::optional<int> most_windows, prefill;

  // --data, --tokens, --window, --windows. The object must outlive the parse.
  void add_to(CLI::App& verb);
  // --prefill, too; the help says what it is by default.
  void add_prefill_to(CLI::App& verb, const std::string& default_prefill);
  // Refuses what can be refused before a model is opened.
  void check() const;
  // A window never holds more than the model's context unless --window was given. Throws Error{invalid_argument} for a
  // text without two tokens or a prefill beyond the window.
  EvalText read(const models::ModelBundle& model) const;

 private:
  CLI::Option* window_option_ = nullptr;
};

// What the verbs that read a text are asked for.
struct EvalFlags {
  ModelFlags model;
  EvalTextFlags text;
  bool json = false;

  // Declares subcommand `name` of eval, whose action is run(flags, context).
  using Run = int (*)(const EvalFlags& flags, CommandContext& context);
  static void add(CLI::App& eval, CommandContext& context, const char* name, const char* description,
                  const char* default_prefill, Run run);
};

// The fields that the JSON answers of all of them begin with.
Json eval_header(const ModelFlags& flags, const models::ModelBundle& model, const EvalText& text);

// Refuses a policy that this run would never use: a measurement of it would say that it costs nothing.
void require_encoding(const models::ModelBundle& model, const EvalText& text);

}  // namespace godwit::cli
