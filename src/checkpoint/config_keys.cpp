#include "checkpoint/config_keys.h"

#include <cmath>

#include "base/error.h"

namespace godwit::checkpoint {
namespace {

constexpr double kExactIntegers = 9007199254740992.0;  // 2^53: beyond it a double no longer names one integer

std::optional<std::int64_t> as_integer(const Json& value) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{INT64_MAX})
    return std::nullopt;
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (!(std::fabs(number) <= kExactIntegers) || number != std::floor(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

std::string shown(const Json& value) {
  std::string text = dump_json(value);
  if (text.size() > 120) text.replace(120, std::string::npos, "...");
  return text;
}

}  // namespace

const Json* ConfigKeys::find(std::string_view key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::int64_t> ConfigKeys::integer(std::string_view key) const {
  const Json* const value = find(key);
  if (!value) return std::nullopt;
  const auto number = as_integer(*value);
  if (!number) bad(key, *value, "an integer");
  return number;
}

std::optional<double> ConfigKeys::number(std::string_view key) const {
  const Json* const value = find(key);
  if (!value) return std::nullopt;
  if (!value->is_number()) bad(key, *value, "a number");
  return value->get<double>();
}

std::optional<bool> ConfigKeys::boolean(std::string_view key) const {
  const Json* const value = find(key);
  if (!value) return std::nullopt;
  if (!value->is_boolean()) bad(key, *value, "true or false");
  return value->get<bool>();
}

std::optional<std::string> ConfigKeys::string(std::string_view key) const {
  const Json* const value = find(key);
  if (!value) return std::nullopt;
  if (!value->is_string()) bad(key, *value, "a string");
  return value->get<std::string>();
}

std::optional<std::vector<double>> ConfigKeys::numbers(std::string_view key) const {
  const Json* const value = find(key);
  if (!value) return std::nullopt;
  if (!value->is_array()) bad(key, *value, "a list of numbers");
  std::vector<double> numbers;
  for (const Json& item : *value) {
    if (!item.is_number()) bad(key, item, "a number in each place");
    numbers.push_back(item.get<double>());
  }
  return numbers;
}

std::optional<int> ConfigKeys::size(std::string_view key, std::int64_t limit) const {
  const auto value = integer(key);
  if (!value) return std::nullopt;
  if (*value < 1 || *value > limit) bad(key, Json(*value), fmt::format("between 1 and {}", limit));
  return static_cast<int>(*value);
}

int ConfigKeys::need_size(std::string_view key, std::int64_t limit) const {
  const auto value = size(key, limit);
  if (!value) missing(key);
  return *value;
}

void ConfigKeys::missing(std::string_view key) const {
  fail(ErrorCode::corrupt_file, "config", "{}: the key {} is missing", origin_, key);
}

void ConfigKeys::bad(std::string_view key, const Json& value, std::string_view wanted) const {
  fail(ErrorCode::corrupt_file, "config", "{}: {} is {}, wanted {}", origin_, key, shown(value), wanted);
}

}  // namespace godwit::checkpoint
