// Words and characters of literals as JSON.
#include <array>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "text/turn/literal_reader.h"

namespace godwit::text {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t digits(std::string_view text, std::size_t at) {
  const std::size_t start = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  return at - start;
}

// The number a Python literal means, in JSON's spelling: 1_000, +1, .5, 1. and 5.e3.
std::string python_number(std::string_view word) {
  std::string out;
  for (const char c : word)
    if (c != '_') out += c;
  if (out.starts_with("+")) out.erase(0, 1);
  const std::size_t sign = out.starts_with("-") ? 1 : 0;
  if (out.substr(sign).starts_with(".")) out.insert(sign, "0");
  const std::size_t dot = out.find('.');
  if (dot != std::string::npos && (dot + 1 == out.size() || !is_digit(out[dot + 1]))) out.insert(dot + 1, "0");
  return out;
}

}  // namespace

// RFC 8259, section 6.
bool is_json_number(std::string_view text) {
  std::size_t at = text.starts_with("-") ? 1 : 0;
  const std::size_t whole = digits(text, at);
  if (whole == 0 || (whole > 1 && text[at] == '0')) return false;
  at += whole;
  if (at < text.size() && text[at] == '.') {
    const std::size_t fraction = digits(text, at + 1);
    if (fraction == 0) return false;
    at += 1 + fraction;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const std::size_t exponent = digits(text, at);
    if (exponent == 0) return false;
    at += exponent;
  }
  return at == text.size();
}

std::string bare_to_json(std::string_view word) {
  static constexpr std::array<std::array<std::string_view, 2>, 6> kWords = {{{"true", "true"},
                                                                             {"false", "false"},
                                                                             {"null", "null"},
                                                                             {"True", "true"},
                                                                             {"False", "false"},
                                                                             {"None", "null"}}};
  for (const auto& [written, json] : kWords)
    if (word == written) return std::string(json);
  // What no double holds is refused by many JSON readers.
  const auto is_number = [](const std::string& text) {
    return is_json_number(text) && std::isfinite(std::strtod(text.c_str(), nullptr));
  };
  for (const std::string& number : {std::string(word), python_number(word)})
    if (is_number(number)) return number;
  return json_string(word);
}

void append_json_escaped(std::string& json, std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '"': json += "\\\""; break;
      case '\\': json += "\\\\"; break;
      case '\n': json += "\\n"; break;
      case '\r': json += "\\r"; break;
      case '\t': json += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20)
          json += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
          json += c;
    }
  }
}

std::string json_string(std::string_view text) {
  std::string json = "\"";
  append_json_escaped(json, text);
  return json + '"';
}

std::optional<std::string> literal_to_json(std::string_view text) {
  TurnInput in;
  in.add(text);
  in.end();
  const LiteralSyntax syntax;
  LiteralReader reader(syntax);
  std::string json;
  reader.read(in, json);
  if (in.space(0) != in.rest().size()) return std::nullopt;
  return json;
}

}  // namespace godwit::text
