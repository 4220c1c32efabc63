// What every verb of the command line is handed, and how a verb joins the program.
//
// A verb lives in src/cli/<verb>.cpp, offers `void add_<verb>(CLI::App& app, CommandContext& context)` and
// has one line in verbs.cpp. add_<verb> declares the subcommand and its flags and, in the subcommand's
// callback, only stores what to do: context.action = [...] { ...; return kExitDone; }. main.cpp runs the
// action after the whole line was parsed, so
// --help and usage errors never touch a model. An action reports failure by throwing Error.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "base/environment.h"
#include "base/log.h"
#include "cli/output.h"

namespace godwit::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;

struct CommandContext {
  Environment environment;
  Log log;      // stderr: warnings on a terminal, errors always, everything with --verbose
  Output& out;  // stdout: results only
  bool err_is_terminal =
      false;  // progress bars and hints are for people: draw them on stderr only when this holds
  std::function<int()> action;  // set by the chosen verb; returns the exit code
  std::string version = {};     // of Godwit
};

using AddVerb = void (*)(CLI::App& app, CommandContext& context);

}  // namespace godwit::cli
