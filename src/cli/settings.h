// Where the value of a flag comes from when the command line does not say it: the environment, then a file,
// then another one, then the default.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/log.h"
#include "cli/config_file.h"

namespace godwit::cli {

// Of one verb, after the command line was parsed. Each source fills the flags that none before it has set, so
// the order of the calls is that of precedence.
class Settings {
 public:
  explicit Settings(CLI::App& verb);

  // GODWIT_MAX_BODY for --max-body. Throws Error{invalid_argument} naming the variable.
  void take(const Environment& environment);
  // Warns of keys that are no flag, with their line. Throws Error{invalid_argument} "FILE:LINE: ...".
  void take(const ConfigTable& table, const std::filesystem::path& file, const Log& log);

  // What is in force, as TOML with the source of each value behind it. Keys are not shown.
  std::string effective() const;

 private:
  CLI::App& verb_;
  std::map<std::string, std::string> sources_;  // flag -> "flag", "GODWIT_PORT", "FILE:3"
};

// "max-body" -> "GODWIT_MAX_BODY".
std::string variable_of(std::string_view flag);

}  // namespace godwit::cli
