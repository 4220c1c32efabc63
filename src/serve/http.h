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

// Who is at the other end of the connection.
struct Client {
  std::string address = {};   // "127.0.0.1", "::1"; "": not known
  bool is_loopback = false;   // on this machine
};

struct TransportRefusal {
  int status = 400;
  std::string code = {};
  std::string message = {};
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
  Client client = {};
  // Set when the transport could not take the request: its answer is this refusal, in the words of its API. What could
  // not be read of the rest is empty.
  std::optional<TransportRefusal> refusal = {};
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
  virtual void idle() = 0;  // nothing to send just now: when it is due, what keeps the connection alive
  // What that is: a whole event of an API that has one for it, else a comment.
  void set_keep_alive(std::string event) { keep_alive_ = std::move(event); }

 protected:
  std::string keep_alive_ = ": ping\n\n";
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
  // Called once, after the last byte or when the client has left (499); until then the stream may still be running.
  std::function<void(int status)> ended = {};

  static Response json(const Json& value, int status = 200);
  static Response event_stream(std::function<void(EventSink&)> events);  // text/event-stream
  static Response line_stream(std::function<void(EventSink&)> lines);    // application/x-ndjson
};

// The value of a name in a target's query, percent-decoded: "/props?model=a%2Fb", "model" -> "a/b".
std::optional<std::string> query_value(std::string_view target, std::string_view name);
// "%2F" -> "/"; malformed escapes stay as they are.
std::string percent_decode(std::string_view text);
bool equal_without_case(std::string_view a, std::string_view b);

}  // namespace godwit::serve
