// The getters of Config over its raw object.
#include "checkpoint/config.h"
#include "checkpoint/config_keys.h"

namespace godwit::checkpoint {
namespace {

template <typename T>
T needed(const std::optional<T>& value, const ConfigKeys& keys, std::string_view key) {
  if (!value) keys.missing(key);
  return *value;
}

}  // namespace

bool Config::has(std::string_view key) const { return ConfigKeys(raw, origin).find(key) != nullptr; }

std::int64_t Config::integer(std::string_view key) const {
  const ConfigKeys keys(raw, origin);
  return needed(keys.integer(key), keys, key);
}
std::int64_t Config::integer(std::string_view key, std::int64_t absent) const {
  return ConfigKeys(raw, origin).integer(key).value_or(absent);
}
double Config::number(std::string_view key) const {
  const ConfigKeys keys(raw, origin);
  return needed(keys.number(key), keys, key);
}
double Config::number(std::string_view key, double absent) const {
  return ConfigKeys(raw, origin).number(key).value_or(absent);
}
bool Config::boolean(std::string_view key) const {
  const ConfigKeys keys(raw, origin);
  return needed(keys.boolean(key), keys, key);
}
bool Config::boolean(std::string_view key, bool absent) const {
  return ConfigKeys(raw, origin).boolean(key).value_or(absent);
}
std::string Config::string(std::string_view key) const {
  const ConfigKeys keys(raw, origin);
  return needed(keys.string(key), keys, key);
}
std::string Config::string(std::string_view key, std::string absent) const {
  return ConfigKeys(raw, origin).string(key).value_or(std::move(absent));
}
std::vector<double> Config::numbers(std::string_view key) const {
  const ConfigKeys keys(raw, origin);
  return needed(keys.numbers(key), keys, key);
}
std::vector<int> Config::integers(std::string_view key) const {
  const ConfigKeys keys(raw, origin);
  std::vector<int> integers;
  for (const double value : needed(keys.numbers(key), keys, key)) {
    if (!(value >= -2147483648.0 && value <= 2147483647.0) || value != static_cast<int>(value))
      keys.bad(key, Json(value), "an integer in each place");
    integers.push_back(static_cast<int>(value));
  }
  return integers;
}

}  // namespace godwit::checkpoint
