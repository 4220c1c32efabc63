#include "serve/server.h"

#include <chrono>
#include <mutex>
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
      : options(options_in),
        log(log_in),
        state(options.build, options.hooks, options.request_seconds, now_unix),
        listener(options.host, options.port, options.limits, log) {
    state.loading = true;
  }

  Context context(ModelDirectory& models) {
    const std::lock_guard lock(mutex);
    return {state, models, access, log};
  }

  const ServerOptions options;
  const Log log;
  ServerState state;
  std::mutex mutex;  // guards access
  AccessRules access;
  HttpListener listener;  // last: its connections use the rest to their end
};

Server::Server(const ServerOptions& options, Log log)
    : impl_(std::make_unique<Impl>(options, std::move(log))) {
  exchange({});
}

Server::~Server() { stop(); }

int Server::port() const { return impl_->listener.port(); }
std::string Server::url() const { return impl_->listener.url(); }

void Server::exchange(ServerSecrets secrets) {
  AccessRules rules;
  rules.is_loopback = impl_->listener.is_loopback();
  rules.host_names = {impl_->options.host};
  rules.origins = impl_->options.cors_origins;
  for (const auto& key : secrets.api_keys) rules.add_key(key);
  impl_->listener.show(std::move(secrets.tls));
  const std::lock_guard lock(impl_->mutex);
  impl_->access = std::move(rules);
}

void Server::start(ModelDirectory& models) {
  impl_->listener.start(
      [impl = impl_.get(), &models](Request& request) { return dispatch(request, impl->context(models)); });
}

void Server::ready() { impl_->state.loading = false; }

void Server::drain(double seconds) {
  impl_->state.draining = true;
  impl_->listener.drain();
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (impl_->listener.busy() > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

void Server::stop() { impl_->listener.stop(); }

}  // namespace godwit::serve
