#include "serve/http_connection.h"

#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <chrono>

#include "serve/request_error.h"

namespace godwit::serve {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using ErrorCodeOfSystem = boost::system::error_code;
using Parser = http::request_parser<http::string_body>;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kReadBytes = 64 << 10;

enum class Peer { there, half_closed, gone };

// Reading is the only way to learn of an end of input, and it must not take bytes of a next request away. A TLS client
// says farewell before it ends its input, so there the end counts though bytes are left.
Peer look_at(int descriptor, bool is_tls) {
  pollfd watched{descriptor, POLLIN | POLLRDHUP, 0};
  if (::poll(&watched, 1, 0) <= 0) return Peer::there;
  if (watched.revents & (POLLERR | POLLHUP | POLLNVAL)) return Peer::gone;
  if (is_tls) return watched.revents & POLLRDHUP ? Peer::half_closed : Peer::there;
  char byte;
  const auto count = ::recv(descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (count == 0) return Peer::half_closed;
  const bool is_quiet = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  return count < 0 && !is_quiet ? Peer::gone : Peer::there;
}

class BusyMark {
 public:
  explicit BusyMark(std::atomic<int>& busy) : busy_(busy) { ++busy_; }
  ~BusyMark() { --busy_; }
  BusyMark(const BusyMark&) = delete;
  BusyMark& operator=(const BusyMark&) = delete;

 private:
  std::atomic<int>& busy_;
};

// Closes what nobody has taken over yet.
class OpenDescriptor {
 public:
  explicit OpenDescriptor(int value) : value_(value) {}
  ~OpenDescriptor() {
    if (value_ >= 0) ::close(value_);
  }
  OpenDescriptor(const OpenDescriptor&) = delete;
  OpenDescriptor& operator=(const OpenDescriptor&) = delete;

  void let_go() { value_ = -1; }

 private:
  int value_;
};

Client client_of(const asio::ip::tcp::socket& socket) {
  ErrorCodeOfSystem error;
  const auto endpoint = socket.remote_endpoint(error);
  if (error) return {};
  return {endpoint.address().to_string(), endpoint.address().is_loopback()};
}

[[noreturn]] void peer_left() { fail(ErrorCode::cancelled, "http", "the client went away"); }

Request to_request(Parser& parser) {
  auto& message = parser.get();
  Request request{.method = std::string(message.method_string()),
                  .target = std::string(message.target()),
                  .body = std::move(message.body()),
                  .is_http_1_0 = message.version() < 11};
  for (const auto& field : message)
    request.headers.add(std::string(field.name_string()), std::string(field.value()));
  return request;
}

// What the parser's refusal means to the peer; nullopt: the connection is simply over.
std::optional<TransportRefusal> refusal(const ErrorCodeOfSystem& error) {
  if (error == http::error::header_limit)
    return TransportRefusal{431, "header_too_large", "the header of the request is too large"};
  if (error == http::error::body_limit)
    return TransportRefusal{413, "body_too_large", "the body of the request is too large"};
  if (error == http::error::buffer_overflow)
    return TransportRefusal{431, "header_too_large", "a chunk header or the trailer of the request is too large"};
  if (error == http::error::end_of_stream || error == http::error::partial_message) return std::nullopt;
  if (error.category() == http::make_error_code(http::error::bad_method).category())
    return TransportRefusal{400, "bad_request", "the request is not valid HTTP: " + error.message()};
  return std::nullopt;
}

// What leaves open where the body ends, or who is meant. The parser takes a coding that it does not know for
// no body at all: the body would then be read as the next request.
std::optional<TransportRefusal> refusal(const Parser::value_type& message) {
  const auto coding = message[http::field::transfer_encoding];
  if (message.count(http::field::transfer_encoding) > 1 ||
      (!coding.empty() && !equal_without_case(std::string_view(coding.data(), coding.size()), "chunked")))
    return TransportRefusal{400, "unsupported_transfer_encoding", "the only transfer coding served is 'chunked'"};
  if (message.count(http::field::host) > 1)
    return TransportRefusal{400, "bad_request", "the request has more than one Host header"};
  return std::nullopt;
}

}  // namespace

struct HttpConnection::Impl {
  Impl(int descriptor, std::shared_ptr<const TlsIdentity> tls_in, Handler handler_in, const HttpLimits& limits_in,
       Lifecycle& lifecycle_in, Log log_in)
      : taken(descriptor),
        stream(io),
        identity(std::move(tls_in)),
        buffer(limits_in.header_bytes + kReadBytes),
        handler(std::move(handler_in)),
        limits(limits_in),
        lifecycle(lifecycle_in),
        log(std::move(log_in)) {
    sockaddr_storage address = {};
    socklen_t size = sizeof address;
    ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
    stream.socket().assign(address.ss_family == AF_INET6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4(),
                           descriptor);
    taken.let_go();
    stream.socket().set_option(asio::ip::tcp::no_delay(true));
    client = client_of(stream.socket());
    if (!identity) return;
    SSL_CTX_up_ref(identity->context());
    asio::ssl::context context(identity->context());  // takes the reference over; the stream has one of its own
    tls.emplace(stream, context);
  }

  // Runs one asynchronous operation to its end, at most so many seconds, as if it were a blocking call.
  template <typename Start>
  ErrorCodeOfSystem run(double seconds, Start start) {
    stream.expires_after(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
    ErrorCodeOfSystem result = asio::error::would_block;
    start([&result](const ErrorCodeOfSystem& error, std::size_t = 0) { result = error; });
    io.restart();
    io.run();
    return result;
  }

  // The same over what bytes go through, TLS or the bare socket: start(wire, done).
  template <typename Start>
  ErrorCodeOfSystem await(Start start) {
    return run(limits.idle_seconds, [&](auto done) {
      if (tls)
        start(*tls, done);
      else
        start(stream, done);
    });
  }

  ErrorCodeOfSystem write(std::string_view bytes) {
    last_write = Clock::now();
    return await([&](auto& wire, auto done) { asio::async_write(wire, asio::buffer(bytes), done); });
  }

  bool shake_hands();
  bool serve_one();
  bool answer(Request& request, bool keep_alive);
  std::optional<TransportRefusal> read(Parser& parser);
  std::optional<TransportRefusal> answer_expectation(Parser& parser);
  bool respond(const Request& request, Response& response, bool keep_alive);
  std::string head_of(const Request& request, const Response& response, bool keep_alive) const;
  void check_alive(bool may_probe);
  void linger();
  void close();

  OpenDescriptor taken;  // the socket, until `stream` has it: what comes before that takes descriptors of its own
  asio::io_context io{1};
  beast::tcp_stream stream;
  std::shared_ptr<const TlsIdentity> identity;
  std::optional<asio::ssl::stream<beast::tcp_stream&>> tls;
  Client client;
  beast::flat_buffer
      buffer;  // bounded: what the parser cannot take piece by piece (a chunk's header) waits here
  Handler handler;
  const HttpLimits& limits;
  Lifecycle& lifecycle;
  Log log;
  bool is_idle = false;
  bool is_streaming = false;  // the head of an event stream has been sent
  bool probes_peer =
      false;  // the peer's end of input was seen: the next idle() writes, so that a reset shows
  bool has_probed = false;
  Clock::time_point last_write;

  class Events;
};

// Frames events; chunked for HTTP/1.1, up to the end of the connection for HTTP/1.0.
class HttpConnection::Impl::Events final : public EventSink {
 public:
  Events(Impl& connection, bool is_chunked, Framing framing)
      : connection_(connection), is_chunked_(is_chunked), framing_(framing) {}

  using EventSink::send;
  void send(std::string_view name, std::string_view data) override {
    if (framing_ == Framing::lines) return write(fmt::format("{}\n", data));
    write(name.empty() ? fmt::format("data: {}\n\n", data) : fmt::format("event: {}\ndata: {}\n\n", name, data));
  }

  void idle() override {
    if (framing_ == Framing::lines) return;  // there is no line that says nothing
    const std::chrono::duration<double> silence = Clock::now() - connection_.last_write;
    const bool probe = std::exchange(connection_.probes_peer, false);
    if (probe || silence.count() >= connection_.limits.ping_seconds) write(keep_alive_);
  }

  bool finish() { return !is_chunked_ || !connection_.write("0\r\n\r\n"); }

 private:
  void write(const std::string& event) {
    if (connection_.write(is_chunked_ ? fmt::format("{:x}\r\n{}\r\n", event.size(), event) : event))
      peer_left();
  }

  Impl& connection_;
  bool is_chunked_;
  Framing framing_;
};

// Called by endpoints between two steps of waiting. An end of input alone does not end a stream: a write
// tells a client that is gone (it answers with a reset, seen at the next look) from one that only closed its
// sending side.
void HttpConnection::Impl::check_alive(bool may_probe) {
  const Peer peer = look_at(stream.socket().native_handle(), tls.has_value());
  if (peer == Peer::gone) peer_left();
  if (peer == Peer::half_closed) {
    if (!may_probe && !limits.waits_for_half_closed) peer_left();
    if (may_probe && !std::exchange(has_probed, true)) probes_peer = true;
  }
  if (lifecycle.stopping)
    throw RequestError(ErrorCode::overloaded, "the server is shutting down",
                       {.code = "draining", .status = 503});
}

// "100-continue" is answered once the header shows that the body is welcome; nothing else can be expected of
// us.
std::optional<TransportRefusal> HttpConnection::Impl::answer_expectation(Parser& parser) {
  const auto expectation = parser.get()[http::field::expect];
  if (expectation.empty() || parser.get().version() < 11) return std::nullopt;
  if (!equal_without_case(std::string_view(expectation.data(), expectation.size()), "100-continue"))
    return TransportRefusal{417, "expectation_failed", "only 100-continue can be expected of this server"};
  write("HTTP/1.1 100 Continue\r\n\r\n");
  return std::nullopt;
}

// Reads a whole request, or says why it is refused. Otherwise parser.is_done() says whether there is one.
std::optional<TransportRefusal> HttpConnection::Impl::read(Parser& parser) {
  parser.header_limit(limits.header_bytes);
  parser.body_limit(limits.body_bytes);
  is_idle = true;
  auto error = await([&](auto& wire, auto done) { http::async_read_header(wire, buffer, parser, done); });
  is_idle = false;
  if (error) return refusal(error);
  if (auto refused = refusal(parser.get())) return refused;
  if (auto refused = answer_expectation(parser)) return refused;
  // Piece by piece: the time limit is one of silence, not of size.
  while (!parser.is_done()) {
    error = await([&](auto& wire, auto done) { http::async_read_some(wire, buffer, parser, done); });
    if (error) return refusal(error);
  }
  return std::nullopt;
}

std::string HttpConnection::Impl::head_of(const Request& request, const Response& response,
                                          bool keep_alive) const {
  const auto status = static_cast<http::status>(response.status);
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\n", response.status, std::string(http::obsolete_reason(status)));
  for (const auto& [name, value] : response.headers.fields()) head += fmt::format("{}: {}\r\n", name, value);
  if (!response.events && response.status != 204 && response.status != 304)
    head += fmt::format("Content-Length: {}\r\n", response.body.size());
  if (response.events && !request.is_http_1_0) head += "Transfer-Encoding: chunked\r\n";
  head += fmt::format("Connection: {}\r\n\r\n", keep_alive ? "keep-alive" : "close");
  return head;
}

// Returns whether the connection can go on.
bool HttpConnection::Impl::respond(const Request& request, Response& response, bool keep_alive) {
  if (response.status == 499) return false;
  keep_alive =
      keep_alive && !response.close && !lifecycle.draining && !(response.events && request.is_http_1_0);
  std::string head = head_of(request, response, keep_alive);
  if (!response.events) {
    if (request.method != "HEAD") head += response.body;
    return !write(head) && keep_alive;
  }
  if (write(head)) return false;
  // A stream of lines has nothing to write that says nothing, so its peer cannot be asked whether it is still there.
  is_streaming = response.framing == Framing::events;
  Events events(*this, !request.is_http_1_0, response.framing);
  response.events(events);
  return events.finish() && keep_alive;
}

// Returns whether the connection can go on. `ended` comes last: by then whatever the answer held has been let go.
bool HttpConnection::Impl::answer(Request& request, bool keep_alive) {
  is_streaming = has_probed = probes_peer = false;
  request.client = client;
  request.check_alive = [this] { check_alive(is_streaming); };
  const BusyMark busy(lifecycle.busy);
  Response response = handler(request);
  int status = response.status;
  bool goes_on = false;
  try {
    goes_on = respond(request, response, keep_alive);
  } catch (const Error&) {
    status = 499;
  }
  response.events = nullptr;
  if (response.ended) response.ended(status);
  return goes_on;
}

bool HttpConnection::Impl::serve_one() {
  Parser parser;
  const auto refused = read(parser);
  if (!refused && !parser.is_done()) return false;
  const bool keep_alive = !refused && parser.get().keep_alive();
  Request request = to_request(parser);
  request.refusal = refused;
  const bool goes_on = answer(request, keep_alive);
  if (refused) linger();
  return goes_on && !refused;
}

bool HttpConnection::Impl::shake_hands() {
  constexpr double kPatience = 10;
  if (!tls) return true;
  const auto error =
      run(kPatience, [&](auto done) { tls->async_handshake(asio::ssl::stream_base::server, done); });
  if (error) log.debug("{}: no TLS connection: {}", client.address, error.message());
  return !error;
}

// A client tells by the farewell of TLS that nothing was cut off.
void HttpConnection::Impl::close() {
  constexpr double kPatience = 1;
  if (tls && SSL_is_init_finished(tls->native_handle()))
    run(kPatience, [&](auto done) { tls->async_shutdown(done); });
  ErrorCodeOfSystem ignored;
  stream.socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  stream.close();
}

// Closing with unread input makes the kernel reset the connection, and the peer may lose the answer. So the
// answer is finished first and what still comes in is thrown away for a moment.
void HttpConnection::Impl::linger() {
  constexpr auto kPatience = std::chrono::seconds(2);
  ErrorCodeOfSystem error;
  stream.socket().shutdown(asio::ip::tcp::socket::shutdown_send, error);
  const auto end = Clock::now() + kPatience;
  std::array<char, 16384> waste;
  while (!error && Clock::now() < end) {
    stream.expires_at(end);
    io.restart();
    stream.async_read_some(asio::buffer(waste),
                           [&error](const ErrorCodeOfSystem& e, std::size_t) { error = e; });
    io.run();
  }
}

HttpConnection::HttpConnection(int descriptor, std::shared_ptr<const TlsIdentity> tls, Handler handler,
                               const HttpLimits& limits, Lifecycle& lifecycle, Log log)
    : impl_(std::make_unique<Impl>(descriptor, std::move(tls), std::move(handler), limits, lifecycle, std::move(log))) {}

HttpConnection::~HttpConnection() = default;

void HttpConnection::serve() {
  try {
    const bool is_open = impl_->shake_hands();
    // One that comes in while the server drains is answered, too: somebody asks for its health.
    while (is_open && impl_->serve_one() && !impl_->lifecycle.draining) {
    }
  } catch (const std::exception& error) {
    impl_->log.error("connection ended: {}", error.what());
  }
  impl_->close();
}

// Runs on the connection's own thread, at its next wait: is_idle then says what it is waiting for.
void HttpConnection::close_if_idle() {
  asio::post(impl_->io, [impl = impl_.get()] {
    if (impl->is_idle) impl->stream.close();
  });
}

void HttpConnection::close() {
  asio::post(impl_->io, [impl = impl_.get()] { impl->stream.close(); });
}

}  // namespace godwit::serve
