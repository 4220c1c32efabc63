// Which files of a repository `get` fetches.
//
// Without --include: safetensors, configs (.json), templates (.jinja) and tokenizers (.model, .txt,
// .tiktoken), at any depth but not below onnx/, openvino/ or original/; never pickles (.bin, .pt, .pth),
// never .gguf. A repository without safetensors but with .gguf files gives its only .gguf, or an error that
// lists them. --include replaces these rules,
// --exclude takes away from either. Globs are fnmatch patterns over the whole path; '*' also matches '/'.
#pragma once

#include <string>
#include <vector>

#include "hub/repo_api.h"

namespace godwit::hub {

struct FileChoice {
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  std::string file;  // one named .gguf (ORG/NAME:FILE); then only it is taken
};

// Throws Error{not_found} when nothing is left and Error{invalid_argument} when a .gguf has to be named.
std::vector<RepoFile> choose_files(const std::vector<RepoFile>& files, const FileChoice& choice,
                                   const std::string& repo);

}  // namespace godwit::hub
