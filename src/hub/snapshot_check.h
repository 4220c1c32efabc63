// Is a folder a model that can be opened? Reads config.json, the shard index and the headers of safetensors
// files (the part that says how long the file must be); never tensor data.
//
// Usable: config.json parses and names a model_type, the weights are complete (every shard of the index
// exists at the size its own header announces), and a tokenizer is there. A folder without safetensors may
// hold .gguf files instead; those are complete on their own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace godwit::hub {

struct FolderCheck {
  bool has_config = false;
  std::string model_type;             // empty when config.json is missing, broken or silent about it
  std::vector<std::string> ggufs;     // relative paths, sorted, complete ones only
  std::uint64_t bytes = 0;            // safetensors files
  std::vector<std::string> problems;  // what stops this folder from being opened; empty: usable
  std::vector<std::string> warnings;  // worth telling, yet usable with --tokens (no tokenizer)

  bool is_safetensors_model() const { return has_config && bytes > 0 && problems.empty(); }
};

// Never throws for what it finds in the folder; a folder that cannot be read is one problem.
FolderCheck check_folder(const std::filesystem::path& folder);

// Size that a safetensors file must have according to its header: 8 + header length + end of the last tensor.
// Throws Error{corrupt_file} when the header is cut or absurd, Error{io, not_found} when the file cannot be
// read.
std::uint64_t announced_safetensors_size(const std::filesystem::path& path);

}  // namespace godwit::hub
