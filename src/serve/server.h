// The server: a listener, the endpoints behind it, and the way both end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/context.h"
#include "serve/http_connection.h"
#include "serve/model_directory.h"
#include "serve/tls_identity.h"

namespace godwit::serve {

// What may be exchanged while the server runs.
struct ServerSecrets {
  std::vector<std::string> api_keys;
  std::shared_ptr<const TlsIdentity> tls;  // null: no TLS
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  // 0: any free one
  std::vector<std::string> cors_origins;
  HttpLimits limits;
  double request_seconds = 3600;  // a request that takes longer ends with 504
  BuildInfo build;
  Hooks hooks;
};

class Server {
 public:
  // Binds the port, before a model is opened: Error{io} naming host:port when it is taken.
  Server(const ServerOptions& options, Log log);
  ~Server();

  int port() const;
  std::string url() const;

  // Keys and certificate from now on; what runs goes on with those that it began with. From any thread.
  void exchange(ServerSecrets secrets);

  // Serves from now on; not ready before ready() was called. The directory must outlive the server or stop().
  void start(ModelDirectory& models);
  void ready();
  // No new generations (503, not ready), health still answers; returns once the running ones are done, or
  // after `seconds`.
  void drain(double seconds);
  // Gives up what still runs and closes all connections.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::serve
