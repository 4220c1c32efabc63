// From what a user typed as MODEL to a path that can be opened.
//
// Tried in this order: an existing path (folder with config.json, folder with exactly one .gguf, or a .gguf
// file); a name in our own models folder (smollm2); an exact hub id ORG/NAME[@revision][:FILE.gguf] in the
// cache; a unique part of the id of a local model, letter case ignored. No network: the error says how to get
// what is missing.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/environment.h"

namespace godwit::hub {

struct ResolvedModel {
  std::filesystem::path path;  // folder or .gguf file
  std::string id;              // what answers call the model: smollm2, ORG/NAME, or the last part of a path
};

// Throws Error{not_found} (nothing of that name, and how to get it), Error{invalid_argument} (several fit;
// they are listed) or Error{corrupt_file} (found, but incomplete; each fault is named).
ResolvedModel resolve_model(std::string_view spec, const Environment& environment);

}  // namespace godwit::hub
