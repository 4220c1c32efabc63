#include "serve/access_line.h"

#include <fmt/format.h>

#include <cmath>

namespace godwit::serve {
namespace {

// Microseconds are enough, and keep the lines short.
double milliseconds(double seconds) { return std::round(seconds * 1e6) / 1e3; }

Json generation_json(const RequestRecord& record) {
  Json json{{"model", record.model},
            {"prompt_tokens", record.prompt_tokens},
            {"cached_tokens", record.cached_tokens},
            {"generated_tokens", record.generated_tokens},
            {"queue_ms", milliseconds(record.queue_seconds)},
            {"prefill_ms", milliseconds(record.prefill_seconds)},
            {"decode_ms", milliseconds(record.decode_seconds)}};
  if (record.first_token_seconds >= 0) json["first_token_ms"] = milliseconds(record.first_token_seconds);
  if (record.decode_seconds > 0)
    json["tps"] = std::round(10 * record.generated_tokens / record.decode_seconds) / 10;
  if (!record.finish.empty()) json["finish"] = record.finish;
  if (record.rows_at_start >= 0) json["rows"] = record.rows_at_start;
  return json;
}

}  // namespace

Json access_json(const RequestRecord& record) {
  Json json{{"id", record.id},         {"method", record.method},
            {"path", record.path},     {"route", record.route.empty() ? Json(nullptr) : Json(record.route)},
            {"status", record.status}, {"ms", milliseconds(record.seconds())},
            {"client", record.client}, {"stream", record.is_stream}};
  if (!record.error.empty()) json["error"] = record.error;
  if (record.submitted > 0) json.update(generation_json(record));
  return json;
}

std::string access_text(const RequestRecord& record) {
  std::string text =
      fmt::format("{} {} {} {:.0f} ms", record.method, record.path, record.status, 1e3 * record.seconds());
  const auto add = [&text](const Json& json) {
    for (const auto& [key, value] : json.items())
      text += fmt::format(" {}={}", key, value.is_string() ? value.get<std::string>() : value.dump());
  };
  Json more{{"client", record.client}};
  if (record.is_stream) more["stream"] = true;
  if (!record.error.empty()) more["error"] = record.error;
  add(more);
  if (record.submitted > 0) add(generation_json(record));
  return text;
}

}  // namespace godwit::serve
