#include "serve/server.h"

#include <chrono>
#include <thread>

#include "serve/dispatch.h"
#include "serve/http_listener.h"

namespace godwit::serve {
namespace {

std::int64_t now_unix() {
  using std::chrono::duration_cast, std::chrono::seconds, std::chrono::system_clock;
  return duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace

struct Server::Impl {
  Impl(const ServerOptions& options_in, Log log_in)
      : options(options_in), log(log_in), listener(options.host, options.port, options.limits, log) {}

  AccessRules access() const {
    AccessRules rules;
    rules.is_loopback = listener.is_loopback();
    rules.host_names = {options.host};
    rules.origins = options.cors_origins;
    for (const auto& key : options.api_keys) rules.add_key(key);
    return rules;
  }

  ServerOptions options;
  Log log;
  std::unique_ptr<Context> context;  // before the listener: connections use it to their end
  HttpListener listener;
};

Server::Server(const ServerOptions& options, Log log)
    : impl_(std::make_unique<Impl>(options, std::move(log))) {}

Server::~Server() { stop(); }

int Server::port() const { return impl_->listener.port(); }
std::string Server::url() const { return impl_->listener.url(); }

void Server::start(ModelDirectory& models) {
  impl_->context.reset(new Context{.models = models,
                                   .access = impl_->access(),
                                   .now_unix = now_unix,
                                   .log = impl_->log});
  impl_->listener.start(
      [context = impl_->context.get()](Request& request) { return dispatch(request, *context); });
}

void Server::drain(double seconds) {
  if (!impl_->context) return;
  impl_->context->draining = true;
  impl_->listener.drain();
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (impl_->listener.busy() > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

void Server::stop() { impl_->listener.stop(); }

}  // namespace godwit::serve
