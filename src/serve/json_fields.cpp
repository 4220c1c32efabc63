#include "serve/json_fields.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "serve/request_error.h"

namespace godwit::serve {
namespace {

// 2^63 is the first double past int64; every integral double below it converts exactly.
constexpr double kInt64End = 9223372036854775808.0;

// A whole number past int64 is the nearest that int64 has.
std::optional<std::int64_t> nearest_integer(const Json& value) {
  using Limits = std::numeric_limits<std::int64_t>;
  if (const auto number = as_integer(value)) return number;
  if (value.is_number_unsigned()) return Limits::max();
  if (!value.is_number_float() || std::abs(value.get<double>()) < kInt64End) return std::nullopt;
  return value.get<double>() > 0 ? Limits::max() : Limits::min();
}

}  // namespace

Json parse_body(const std::string& body) {
  Json parsed;
  try {
    parsed = parse_json(body, "request body");
  } catch (const Error& e) {
    throw RequestError(ErrorCode::invalid_argument, plain_message(e.what()), {.code = "invalid_json"});
  }
  if (!parsed.is_object())
    throw RequestError(ErrorCode::invalid_argument,
                       fmt::format("the request body must be a JSON object, got {}", shown(parsed)),
                       {.code = "invalid_json"});
  return parsed;
}

std::string shown(const Json& value) {
  constexpr std::size_t kMost = 80;
  if (value.is_structured()) return value.is_array() ? "an array" : "an object";
  std::string text = dump_json(value);
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

std::optional<std::int64_t> as_integer(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (!(std::abs(number) < kInt64End) || std::trunc(number) != number) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

JsonFields::JsonFields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (!object_.is_object()) bad_field(path_, "must be an object, got {}", shown(object_));
}

const Json* JsonFields::find(std::string_view name) const {
  ignore(name);
  const auto at = object_.find(std::string(name));
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

bool JsonFields::has(std::string_view name) const {
  ignore(name);
  return object_.contains(std::string(name));
}

std::string JsonFields::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

std::optional<bool> JsonFields::boolean(std::string_view name) const {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_boolean()) bad_field(path_of(name), "must be true or false, got {}", shown(*value));
  return value->get<bool>();
}

std::optional<std::int64_t> JsonFields::integer(std::string_view name, std::int64_t least,
                                                std::int64_t most) const {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  const auto number = nearest_integer(*value);
  if (!number) bad_field(path_of(name), "must be an integer, got {}", shown(*value));
  if (*number < least) bad_field(path_of(name), "must be at least {}, got {}", least, shown(*value));
  if (*number > most) bad_field(path_of(name), "must be at most {}, got {}", most, shown(*value));
  return number;
}

std::optional<int> JsonFields::count(std::string_view name, std::int64_t least) const {
  using Limits = std::numeric_limits<int>;
  const auto number = integer(name, least);
  if (!number) return std::nullopt;
  return static_cast<int>(std::clamp<std::int64_t>(*number, Limits::min(), Limits::max()));
}

std::optional<double> JsonFields::number(std::string_view name, double least, double most) const {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_number()) bad_field(path_of(name), "must be a number, got {}", shown(*value));
  const double number = value->get<double>();
  const bool has_bound = most < std::numeric_limits<double>::max();
  if (!has_bound && std::isfinite(number) && number < least)
    bad_field(path_of(name), "must be {}, got {}",
              least > 0 && least < 1e-300 ? "greater than 0" : fmt::format("at least {}", least),
              shown(*value));
  if (!has_bound && !std::isfinite(number)) bad_field(path_of(name), "must be finite, got {}", shown(*value));
  if (!std::isfinite(number) || number < least || number > most)
    bad_field(path_of(name), "must be within {}..{}, got {}", least, most, shown(*value));
  return number;
}

std::optional<std::string> JsonFields::string(std::string_view name) const {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_string()) bad_field(path_of(name), "must be a string, got {}", shown(*value));
  return value->get<std::string>();
}

const Json* JsonFields::array(std::string_view name) const {
  const Json* value = find(name);
  if (value && !value->is_array()) bad_field(path_of(name), "must be an array, got {}", shown(*value));
  return value;
}

const Json* JsonFields::object(std::string_view name) const {
  const Json* value = find(name);
  if (value && !value->is_object()) bad_field(path_of(name), "must be an object, got {}", shown(*value));
  return value;
}

}  // namespace godwit::serve
