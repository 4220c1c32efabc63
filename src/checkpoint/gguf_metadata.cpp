#include <utility>

#include "base/error.h"
#include "checkpoint/gguf.h"

namespace godwit::checkpoint {

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

void GgufMetadata::bad(std::string_view key, std::string_view wanted) const {
  fail(ErrorCode::corrupt_file, "gguf", "{}: the key {} is not {}", origin_, key, wanted);
}

std::optional<std::int64_t> GgufMetadata::integer(std::string_view key) const {
  const GgufValue* const value = find(key);
  if (!value) return std::nullopt;
  if (const auto* const number = std::get_if<std::int64_t>(value)) return *number;
  bad(key, "an integer");
}

std::optional<double> GgufMetadata::number(std::string_view key) const {
  const GgufValue* const value = find(key);
  if (!value) return std::nullopt;
  if (const auto* const number = std::get_if<double>(value)) return *number;
  if (const auto* const number = std::get_if<std::int64_t>(value)) return static_cast<double>(*number);
  bad(key, "a number");
}

std::optional<bool> GgufMetadata::boolean(std::string_view key) const {
  const GgufValue* const value = find(key);
  if (!value) return std::nullopt;
  if (const auto* const truth = std::get_if<bool>(value)) return *truth;
  bad(key, "a boolean");
}

std::optional<std::string> GgufMetadata::string(std::string_view key) const {
  const GgufValue* const value = find(key);
  if (!value) return std::nullopt;
  if (const auto* const text = std::get_if<std::string>(value)) return *text;
  bad(key, "a string");
}

std::optional<std::vector<std::int64_t>> GgufMetadata::integers(std::string_view key) const {
  const GgufValue* const value = find(key);
  if (!value) return std::nullopt;
  if (const auto* const list = std::get_if<std::vector<std::int64_t>>(value)) return *list;
  if (const auto* const number = std::get_if<std::int64_t>(value)) return std::vector{*number};
  bad(key, "a list of integers");
}

std::optional<std::vector<double>> GgufMetadata::numbers(std::string_view key) const {
  const GgufValue* const value = find(key);
  if (!value) return std::nullopt;
  if (const auto* const list = std::get_if<std::vector<double>>(value)) return *list;
  bad(key, "a list of numbers");
}

std::optional<StringList> GgufMetadata::take_strings(std::string_view key) {
  if (!strings(key)) return std::nullopt;
  return std::exchange(std::get<StringList>(values_.find(key)->second), {});
}

const StringList* GgufMetadata::strings(std::string_view key) const {
  const GgufValue* const value = find(key);
  if (!value) return nullptr;
  if (const auto* const list = std::get_if<StringList>(value)) return list;
  bad(key, "a list of strings");
}

}  // namespace godwit::checkpoint
