#include "base/environment.h"

#include "base/error.h"

namespace godwit {

std::optional<std::string> Environment::get(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::filesystem::path Environment::user_cache_folder() const {
  if (const auto xdg = get("XDG_CACHE_HOME")) return *xdg;
  if (const auto home = get("HOME")) return std::filesystem::path(*home) / ".cache";
  fail(ErrorCode::not_found, "environment",
       "neither XDG_CACHE_HOME nor HOME is set, so there is no cache folder");
}

}  // namespace godwit
