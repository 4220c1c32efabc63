// Escapes in strings of literals: JSON's pass, Python's become JSON's, all others were meant as they stand.
#include <charconv>

#include "text/turn/literal_reader.h"
#include "text/utf8.h"

namespace godwit::text {
namespace {

constexpr std::string_view kReplacement = "\\ufffd";

// The number that `size` digits at `at` spell; nullopt: other characters are there.
std::optional<std::uint32_t> number_at(std::string_view text, std::size_t at, std::size_t size, int base) {
  if (at + size > text.size()) return std::nullopt;
  std::uint32_t value = 0;
  const char* const first = text.data() + at;
  const auto [end, error] = std::from_chars(first, first + size, value, base);
  if (error != std::errc() || end != first + size) return std::nullopt;
  return value;
}

// Whether the text ends in the middle of `size` digits at `at`.
bool is_digits_so_far(std::string_view text, std::size_t at, std::size_t size, int base) {
  if (text.size() >= at + size) return false;
  return text.size() <= at || number_at(text, at, text.size() - at, base).has_value();
}

bool is_surrogate(std::uint32_t code, std::uint32_t first) { return code >= first && code < first + 0x400; }

}  // namespace

bool LiteralReader::read_escape(TurnInput& in, std::string& json) {
  const std::string_view text = in.rest();
  if (text.size() < 2 && !in.has_ended()) return false;
  const char c = text.size() < 2 ? '\0' : text[1];
  if (c != '\0' && std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos) {
    json += text.substr(0, 2);
    in.take(2);
    return true;
  }
  if (c == '\'') {
    json += c;
    in.take(2);
    return true;
  }
  if (c != 'u') {
    if (syntax_.is_python) return read_python_escape(in, json);
    json += "\\\\";
    in.take(1);
    return true;
  }
  if (!in.has_ended() && is_digits_so_far(text, 2, 4, 16)) return false;
  const auto code = number_at(text, 2, 4, 16);
  if (!code) {
    json += "\\\\";
    in.take(1);
    return true;
  }
  if (is_surrogate(*code, 0xD800)) {  // the first half of a character
    const std::string_view second = text.substr(6);
    if (!in.has_ended() && std::string_view("\\u").starts_with(second.substr(0, 2)) &&
        is_digits_so_far(second, 2, 4, 16))
      return false;
    const auto low = second.starts_with("\\u") ? number_at(second, 2, 4, 16) : std::nullopt;
    if (low && is_surrogate(*low, 0xDC00)) {
      json += text.substr(0, 12);
      in.take(12);
      return true;
    }
  }
  const bool is_half = is_surrogate(*code, 0xD800) || is_surrogate(*code, 0xDC00);
  json += is_half ? kReplacement : text.substr(0, 6);
  in.take(6);
  return true;
}

// docs.python.org, "Escape sequences"; named characters stay as they stand.
bool LiteralReader::read_python_escape(TurnInput& in, std::string& json) {
  const std::string_view text = in.rest();
  const char c = text.size() < 2 ? '\0' : text[1];
  const std::size_t digits = c == 'x' ? 2 : c == 'U' ? 8 : 0;
  std::string meant = "\\";
  std::size_t size = 1;
  if (digits > 0) {
    if (!in.has_ended() && is_digits_so_far(text, 2, digits, 16)) return false;
    const auto code = number_at(text, 2, digits, 16);
    if (code && *code < 0x110000 && !is_surrogate(*code, 0xD800) && !is_surrogate(*code, 0xDC00)) {
      meant.clear();
      append_utf8(meant, static_cast<char32_t>(*code));
      size = 2 + digits;
    }
  } else if (c >= '0' && c <= '7') {
    std::size_t count = 1;
    while (count < 3 && number_at(text, 1, count + 1, 8)) ++count;
    if (!in.has_ended() && count < 3 && text.size() <= 1 + count) return false;
    meant.clear();
    append_utf8(meant, static_cast<char32_t>(*number_at(text, 1, count, 8)));
    size = 1 + count;
  } else if (c == '\n' || c == 'a' || c == 'v') {
    meant = c == '\n' ? "" : c == 'a' ? "\a" : "\v";
    size = 2;
  }
  append_json_escaped(json, meant);
  in.take(size);
  return true;
}

}  // namespace godwit::text
