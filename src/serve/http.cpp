#include "serve/http.h"

#include <algorithm>
#include <charconv>

namespace godwit::serve {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::optional<char> hex_pair(std::string_view digits) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return static_cast<char>(value);
}

Response stream_of(std::function<void(EventSink&)> pieces, Framing framing, std::string type) {
  Response response{.events = std::move(pieces), .framing = framing};
  response.headers.add("Content-Type", std::move(type));
  response.headers.add("Cache-Control", "no-cache, no-transform");
  response.headers.add("X-Accel-Buffering", "no");
  return response;
}

}  // namespace

bool equal_without_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::optional<std::string_view> Headers::find(std::string_view name) const {
  for (const auto& [field, value] : fields_)
    if (equal_without_case(field, name)) return value;
  return std::nullopt;
}

Response Response::json(const Json& value, int status) {
  Response response{.status = status, .body = dump_json(value)};
  response.headers.add("Content-Type", "application/json; charset=utf-8");
  return response;
}

Response Response::event_stream(std::function<void(EventSink&)> events) {
  return stream_of(std::move(events), Framing::events, "text/event-stream; charset=utf-8");
}

Response Response::line_stream(std::function<void(EventSink&)> lines) {
  return stream_of(std::move(lines), Framing::lines, "application/x-ndjson");
}

std::optional<std::string> query_value(std::string_view target, std::string_view name) {
  std::size_t at = target.find('?');
  while (at != std::string_view::npos) {
    target.remove_prefix(at + 1);
    const std::string_view field = target.substr(0, target.find('&'));
    if (field.starts_with(name) && field.substr(name.size()).starts_with('='))
      return percent_decode(field.substr(name.size() + 1));
    at = target.find('&');
  }
  return std::nullopt;
}

std::string percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = text[i] == '%' && i + 2 < text.size() ? hex_pair(text.substr(i + 1, 2)) : std::nullopt;
    out += byte.value_or(text[i]);
    if (byte) i += 2;
  }
  return out;
}

}  // namespace godwit::serve
