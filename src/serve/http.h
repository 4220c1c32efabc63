// Requests and responses as the endpoints see them. No network library shows here.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace godwit::serve {

class Headers {
 public:
  void add(std::string name, std::string value) { fields_.emplace_back(std::move(name), std::move(value)); }
  // The first field of that name, compared without case.
  std::optional<std::string_view> find(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& fields() const { return fields_; }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

struct Request {
  std::string method = {};
  std::string target = {};  // as sent, with query
  Headers headers = {};
  std::string body = {};
  bool is_http_1_0 = false;
  std::string id = {};    // x-request-id, accepted or drawn
  std::string path = {};  // filled by dispatch: no query, no trailing slash, no /v1
  std::string rest = {};  // what a prefix route left over, percent-decoded: the id of /models/{id}
  // Throws Error{cancelled} when the peer has left, or the error of a shutdown that cannot wait any longer.
  // Endpoints call it whenever they have waited a little.
  std::function<void()> check_alive = [] {};
};

// Where the pieces of a streamed answer go. Every function throws Error{cancelled} once the peer is gone.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // One event, or one line of a line stream; `data` holds no line break.
  virtual void send(std::string_view data) { send("", data); }
  // An event with a name; a line stream has none.
  virtual void send(std::string_view name, std::string_view data) = 0;
  virtual void idle() = 0;  // nothing to send just now: keep-alive comments when due
};

enum class Framing {
  events,  // server-sent events
  lines,   // one JSON text a line
};

struct Response {
  int status = 200;
  Headers headers = {};
  std::string body = {};
  std::function<void(EventSink&)> events = {};  // set: a stream; body is unused
  Framing framing = Framing::events;
  bool close = false;                           // end the connection after this answer

  static Response json(const Json& value, int status = 200);
  static Response event_stream(std::function<void(EventSink&)> events);  // text/event-stream
  static Response line_stream(std::function<void(EventSink&)> lines);    // application/x-ndjson
};

// "%2F" -> "/"; malformed escapes stay as they are.
std::string percent_decode(std::string_view text);
bool equal_without_case(std::string_view a, std::string_view b);

}  // namespace godwit::serve
