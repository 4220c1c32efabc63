// Where models lie on this machine, and how the names of the Hugging Face cache are spelled.
//
// Cache root: HF_HUB_CACHE, else HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else
// ~/.cache/huggingface/hub; a leading "~/" in a variable stands for $HOME. Layout below it (the one
// huggingface_hub documents):
//   models--ORG--NAME/refs/<revision>           40 hexadecimal digits, a commit
//   models--ORG--NAME/snapshots/<commit>/<path> relative links into blobs (plain files where links do not
//   work) models--ORG--NAME/blobs/<hash>              sha256 (large files) or git blob sha1;
//   "<hash>.incomplete" is partial .locks/models--ORG--NAME/<hash>.lock        flock while a blob is fetched
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/environment.h"

namespace godwit::hub {

std::filesystem::path hub_cache_root(const Environment& environment);

// Our own folder: user cache / godwit / models. Holds NAME/ folders and NAME.gguf files.
std::filesystem::path own_models_folder(const Environment& environment);

// HF_TOKEN, else the file HF_TOKEN_PATH, else HF_HOME/token (default ~/.cache/huggingface/token). Empty when
// there is none.
std::string hub_token(const Environment& environment);

// HF_HUB_OFFLINE is 1, ON, YES or TRUE in any case.
bool is_offline(const Environment& environment);

// ORG/NAME[@REVISION][:FILE]; NAME alone is allowed (old canonical ids).
struct RepoSpec {
  std::string repo;
  std::string revision;  // empty: not given
  std::string file;      // empty: not given
};

// Empty when `text` cannot be a hub id: more than one slash, a character the hub refuses, a leading or
// trailing '.' or
// '-', "--" or "..".
std::optional<RepoSpec> parse_repo_spec(std::string_view text);

// "ORG/NAME" <-> "models--ORG--NAME".
std::string repo_folder_name(std::string_view repo);
std::optional<std::string> repo_of_folder(std::string_view folder);

bool is_hex(std::string_view text, std::size_t digits);

// True for a relative path that stays below its folder on every file system: no empty, "." or ".." component,
// no leading slash, no backslash, no control character, no component over 255 bytes.
bool is_safe_relative_path(std::string_view path);

// "NAME-00002-of-00005.gguf" -> {NAME, 2, 5}; empty for any other name or `extension`. Split GGUF files are opened by
// their first part.
struct SplitName {
  std::string stem;
  int part = 0;
  int parts = 0;
};
std::optional<SplitName> parse_split_name(std::string_view file, std::string_view extension = ".gguf");
std::string split_part_name(const SplitName& name, int part);

}  // namespace godwit::hub
