#include "checkpoint/strict_json.h"

#include <set>
#include <vector>

#include "base/error.h"

namespace godwit::checkpoint {
namespace {

constexpr int kMaxDepth = 16;
constexpr std::size_t kMaxShown = 200;

}  // namespace

HeaderJson parse_header_json(std::string_view text, std::string_view origin) {
  using Event = HeaderJson::parse_event_t;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int depth, Event event, HeaderJson& parsed) {
    if (depth > kMaxDepth)
      fail(ErrorCode::corrupt_file, "json", "{}: nesting deeper than {}", origin, kMaxDepth);
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(parsed.get<std::string>()).second)
      fail(ErrorCode::corrupt_file, "json", "{}: the name {} stands twice", origin, header_text(parsed));
    return true;
  };
  try {
    return HeaderJson::parse(text, watch);
  } catch (const HeaderJson::exception& e) {
    fail(ErrorCode::corrupt_file, "json", "{}: {}", origin, e.what());
  }
}

std::string header_text(const HeaderJson& value) {
  std::string text = value.dump(-1, ' ', false, HeaderJson::error_handler_t::replace);
  if (text.size() > kMaxShown) text.replace(kMaxShown, std::string::npos, "...");
  return text;
}

}  // namespace godwit::checkpoint
