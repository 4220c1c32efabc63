// Typed reading of one JSON object of a config. Each getter treats null as absent and throws
// Error{corrupt_file} naming file, key and value when the type or the range is wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace godwit::checkpoint {

class ConfigKeys {
 public:
  // Both are borrowed.
  ConfigKeys(const Json& object, std::string_view origin) : object_(object), origin_(origin) {}

  const Json* find(std::string_view key) const;  // nullptr when absent or null
  // Booleans are no integers; 16.0 is 16.
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string> string(std::string_view key) const;
  std::optional<std::vector<double>> numbers(std::string_view key) const;

  // A size in [1, limit].
  std::optional<int> size(std::string_view key, std::int64_t limit) const;
  int need_size(std::string_view key, std::int64_t limit) const;

  [[noreturn]] void missing(std::string_view key) const;
  [[noreturn]] void bad(std::string_view key, const Json& value, std::string_view wanted) const;

 private:
  const Json& object_;
  std::string_view origin_;
};

}  // namespace godwit::checkpoint
