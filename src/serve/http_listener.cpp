#include "serve/http_listener.h"

#include <unistd.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <exception>
#include <list>
#include <mutex>
#include <thread>

#include "base/error.h"

namespace godwit::serve {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorCodeOfSystem = boost::system::error_code;

// What a peer beyond the limit is told. A connection has a thread; its stack is only address space until it is used.
constexpr std::string_view kBusy =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

tcp::endpoint resolve(asio::io_context& io, const std::string& host, int port) {
  const auto number = static_cast<asio::ip::port_type>(port);
  ErrorCodeOfSystem error;
  const auto address = asio::ip::make_address(host, error);
  if (!error) return {address, number};
  const auto found = tcp::resolver(io).resolve(host, std::to_string(port), error);
  if (error || found.empty()) fail(ErrorCode::io, "http", "{}:{}: cannot resolve the host", host, port);
  return found.begin()->endpoint();
}

}  // namespace

struct HttpListener::Impl {
  struct Entry {
    std::unique_ptr<HttpConnection> connection;
    std::thread thread;
    std::atomic<bool> is_done{false};
  };

  Impl(const std::string& host, int port, HttpLimits limits_in, Log log_in)
      : acceptor(io), retry(io), limits(limits_in), log(std::move(log_in)) {
    const tcp::endpoint endpoint = resolve(io, host, port);
    try {
      acceptor.open(endpoint.protocol());
      acceptor.set_option(tcp::acceptor::reuse_address(true));  // a restart need not wait for old connections
      acceptor.bind(endpoint);
    } catch (const boost::system::system_error& error) {
      fail(ErrorCode::io, "http", "{}:{}: cannot listen: {}", host, port, error.code().message());
    }
    shown_host = host;
  }

  void accept() {
    acceptor.async_accept([this](const ErrorCodeOfSystem& error, tcp::socket socket) {
      if (!acceptor.is_open()) return;
      if (!error) {
        admit(std::move(socket));
        return accept();
      }
      // Out of descriptors, most likely: they come back as connections end.
      reap();
      log.warning("cannot accept a connection: {}", error.message());
      retry.expires_after(std::chrono::milliseconds(100));
      retry.async_wait([this](const ErrorCodeOfSystem& cancelled) {
        if (!cancelled) accept();
      });
    });
  }

  void admit(tcp::socket socket) {
    reap();
    const std::lock_guard lock(mutex);
    if (entries.size() >= limits.connections) {
      ErrorCodeOfSystem ignored;
      if (!identity) socket.write_some(asio::buffer(kBusy), ignored);
      return;
    }
    Entry& entry = entries.emplace_back();
    try {
      entry.connection = std::make_unique<HttpConnection>(socket.release(), identity, handler, limits, lifecycle, log);
      entry.thread = std::thread([&entry] {
        entry.connection->serve();
        entry.is_done = true;
      });
    } catch (const std::exception& error) {  // out of descriptors or threads: they come back as connections end
      log.warning("cannot serve a connection: {}", error.what());
      entries.pop_back();
    }
  }

  void reap() {
    const std::lock_guard lock(mutex);
    for (auto entry = entries.begin(); entry != entries.end();) {
      if (!entry->is_done) {
        ++entry;
        continue;
      }
      entry->thread.join();
      entry = entries.erase(entry);
    }
  }

  void close_idle() {
    const std::lock_guard lock(mutex);
    for (Entry& entry : entries) entry.connection->close_if_idle();
  }

  // Once nothing is accepted any more. What is being read or written may end by itself for a moment; a peer that stands
  // still does not hold up the rest.
  void end_all() {
    constexpr auto kPatience = std::chrono::seconds(2);
    constexpr auto kTick = std::chrono::milliseconds(5);
    const auto end = std::chrono::steady_clock::now() + kPatience;
    const std::lock_guard lock(mutex);
    for (Entry& entry : entries) {
      while (!entry.is_done && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kTick);
      if (!entry.is_done) entry.connection->close();
    }
    for (Entry& entry : entries) entry.thread.join();
    entries.clear();
  }

  asio::io_context io{1};
  tcp::acceptor acceptor;
  asio::steady_timer retry;
  HttpLimits limits;
  Log log;
  std::string shown_host;
  Handler handler;
  Lifecycle lifecycle;
  std::thread thread;        // runs io: accepts
  mutable std::mutex mutex;  // guards what follows
  std::shared_ptr<const TlsIdentity> identity;
  std::list<Entry> entries;  // a list: threads hold references into it
};

HttpListener::HttpListener(const std::string& host, int port, HttpLimits limits, Log log)
    : impl_(std::make_unique<Impl>(host, port, limits, std::move(log))) {}

HttpListener::~HttpListener() { stop(); }

int HttpListener::port() const { return impl_->acceptor.local_endpoint().port(); }

bool HttpListener::is_loopback() const { return impl_->acceptor.local_endpoint().address().is_loopback(); }

std::string HttpListener::url() const {
  const bool is_v6_literal = impl_->shown_host.find(':') != std::string::npos;
  const std::lock_guard lock(impl_->mutex);
  return fmt::format("{}://{}{}{}:{}", impl_->identity ? "https" : "http", is_v6_literal ? "[" : "", impl_->shown_host,
                     is_v6_literal ? "]" : "", port());
}

void HttpListener::show(std::shared_ptr<const TlsIdentity> identity) {
  const std::lock_guard lock(impl_->mutex);
  impl_->identity = std::move(identity);
}

int HttpListener::busy() const { return impl_->lifecycle.busy; }

void HttpListener::start(Handler handler) {
  impl_->handler = std::move(handler);
  try {
    impl_->acceptor.listen();
  } catch (const boost::system::system_error& error) {
    fail(ErrorCode::io, "http", "{}: cannot listen: {}", url(), error.code().message());
  }
  impl_->accept();
  impl_->thread = std::thread([this] { impl_->io.run(); });
}

void HttpListener::drain() {
  impl_->lifecycle.draining = true;
  impl_->close_idle();
}

void HttpListener::stop() {
  drain();
  impl_->lifecycle.stopping = true;
  if (impl_->thread.joinable()) {
    asio::post(impl_->io, [this] {
      impl_->acceptor.close();
      impl_->retry.cancel();
    });
    impl_->thread.join();
  }
  impl_->close_idle();  // those accepted since drain()
  impl_->end_all();
}

}  // namespace godwit::serve
