// One TCP connection: reads requests one after another, writes their answers, watches the peer in between.
// Blocking; the listener gives each connection a thread of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

#include "base/log.h"
#include "serve/http.h"
#include "serve/tls_identity.h"

namespace godwit::serve {

struct HttpLimits {
  std::size_t body_bytes = std::size_t{32} << 20;  // beyond: 413
  std::uint32_t header_bytes = 64 << 10;           // beyond: 431
  double idle_seconds = 75;                        // without a byte from or to the peer
  std::size_t connections = 1024;                  // at the same time; further ones are told to come back
  double ping_seconds = 10;  // silence on an event stream before a comment keeps it alive
  // Whether a peer that shut its sending side may still wait for a whole (not streamed) answer. Off, since an
  // end of input is also the only sign of a client that gave up.
  bool waits_for_half_closed = false;
};

// How a server and its connections tell each other about its end.
struct Lifecycle {
  std::atomic<bool> draining{false};  // answers go out with "Connection: close"
  std::atomic<bool> stopping{false};  // answers in the making are given up
  std::atomic<int> busy{0};           // connections with an answer in the making
};

using Handler = std::function<Response(Request&)>;

class HttpConnection {
 public:
  // The socket, and what its thread waits with.
  static constexpr int kDescriptors = 4;

  // Takes over the connected socket `descriptor`, also when it throws: std::exception, out of descriptors (each connection
  // has kDescriptors of them) or of memory. `tls`: what it shows of itself; null: the connection is a plain one.
  HttpConnection(int descriptor, std::shared_ptr<const TlsIdentity> tls, Handler handler, const HttpLimits& limits,
                 Lifecycle& lifecycle, Log log);
  ~HttpConnection();

  // Serves until the connection ends. Never throws.
  void serve();
  // From any thread: closes the connection if it waits for a request.
  void close_if_idle();
  // From any thread: closes it at its next wait for the peer, or in the middle of that.
  void close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::serve
