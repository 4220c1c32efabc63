// The settings of a verb from a TOML file: keys are the names of its flags. docs/operations.md.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace godwit::cli {

struct ConfigEntry {
  std::string key;                  // "port"
  std::vector<std::string> values;  // one, or those of an array
  int line = 0;
};

using ConfigTable = std::vector<ConfigEntry>;

struct ConfigFile {
  std::filesystem::path path;
  ConfigTable settings;             // of the top level and of [serve]
  std::vector<ConfigTable> models;  // one for each [[models]]
  std::vector<ConfigEntry> others;  // tables that say nothing here
};

// Throws Error{io} for a file that cannot be read and Error{invalid_argument} "FILE:LINE: ..." for what is no
// TOML, or a value that is no string, number, boolean or array of these.
ConfigFile read_config_file(const std::filesystem::path& path);

}  // namespace godwit::cli
