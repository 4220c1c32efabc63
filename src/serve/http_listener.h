// Listens on a port and gives each connection a thread, up to a limit.
#pragma once

#include <memory>
#include <string>

#include "serve/http_connection.h"

namespace godwit::serve {

class HttpListener {
 public:
  // Binds at once, so that a busy port is known before a model is loaded: Error{io} naming host:port. Port 0
  // takes a free one. No connection is accepted before start().
  HttpListener(const std::string& host, int port, HttpLimits limits, Log log);
  ~HttpListener();

  // What connections from now on are shown; null: they are plain ones. From any thread.
  void show(std::shared_ptr<const TlsIdentity> identity);

  int port() const;
  bool is_loopback() const;
  std::string url() const;  // http://127.0.0.1:8080, https once there is a certificate

  void start(Handler handler);
  // Answers from now on end their connection, and idle connections are closed. New ones are still accepted:
  // health must stay visible.
  void drain();
  int busy() const;  // answers in the making
  // Gives up answers in the making (streams end with an error event) and returns when all connections are
  // closed. Peers that neither send nor take anything are left after two seconds.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::serve
