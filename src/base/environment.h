// The process environment, read once by the program and handed down: no getenv below cli.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace godwit {

class Environment {
 public:
  Environment() = default;
  explicit Environment(std::map<std::string, std::string> values) : values_(std::move(values)) {}

  // A set but empty variable counts as absent.
  std::optional<std::string> get(const std::string& name) const;

  // $XDG_CACHE_HOME, else $HOME/.cache. Throws Error{not_found} when neither is set.
  std::filesystem::path user_cache_folder() const;
  // Our own part of it: user_cache_folder()/godwit. Models live in its "models" folder.
  std::filesystem::path godwit_cache_folder() const { return user_cache_folder() / "godwit"; }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace godwit
