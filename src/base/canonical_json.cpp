#include "base/canonical_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

namespace godwit {
namespace {

std::string number_text(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  std::array<char, 32> text{};
  const bool is_whole = number >= -kLimit && number < kLimit && number == std::floor(number);
  const auto end = is_whole
                       ? std::to_chars(text.begin(), text.end(), static_cast<std::int64_t>(number)).ptr
                       : std::to_chars(text.begin(), text.end(), number, std::chars_format::scientific).ptr;
  return {text.begin(), end};
}

void append(const Json& value, std::string& out);

void append_object(const Json& object, std::string& out) {
  std::vector<std::pair<std::string_view, const Json*>> members;
  for (const auto& [key, value] : object.items()) members.emplace_back(key, &value);
  std::ranges::sort(members, {}, [](const auto& member) { return member.first; });
  out += '{';
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i > 0) out += ',';
    out += dump_json(Json(std::string(members[i].first))) + ':';
    append(*members[i].second, out);
  }
  out += '}';
}

void append(const Json& value, std::string& out) {
  if (value.is_object()) return append_object(value, out);
  if (value.is_number_float()) {
    out += number_text(value.get<double>());
    return;
  }
  if (!value.is_array()) {
    out += dump_json(value);  // integers have no locale in nlohmann's own writer
    return;
  }
  out += '[';
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (i > 0) out += ',';
    append(value[i], out);
  }
  out += ']';
}

}  // namespace

std::string canonical_json(const Json& value) {
  std::string out;
  append(value, out);
  return out;
}

}  // namespace godwit
