// The server: a listener, the endpoints behind it, and the way both end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/http_connection.h"
#include "serve/model_directory.h"

namespace godwit::serve {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  // 0: any free one
  std::vector<std::string> api_keys;
  std::vector<std::string> cors_origins;
  HttpLimits limits;
};

class Server {
 public:
  // Binds the port, before a model is opened: Error{io} naming host:port when it is taken.
  Server(const ServerOptions& options, Log log);
  ~Server();

  int port() const;
  std::string url() const;

  // Serves from now on. The directory must outlive the server or stop().
  void start(ModelDirectory& models);
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
