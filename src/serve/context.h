// What endpoints work with: what the server keeps for all requests, and what one request sees of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "serve/access.h"
#include "serve/model_directory.h"
#include "serve/request_record.h"
#include "serve/responses_store.h"
#include "serve/server_metrics.h"

namespace godwit::serve {

// What the program around the server does for it.
struct Hooks {
  std::function<void(LogLevel, std::string_view id, std::string_view message)> request_line = {};
  std::function<void(const RequestRecord&)> access_line = {};                         // at the end of each request
  std::function<void(const RequestRecord&, std::string_view body)> prompt_line = {};  // set: prompts are to be kept
  std::function<void()> drain = {};                                                   // begins the end of the server
};

// Lives as long as the server; requests share it, so that nothing of it has to be handed from one to the next.
struct ServerState {
  ServerState(BuildInfo build, Hooks hooks_in, double request_seconds_in, std::function<std::int64_t()> now_unix_in)
      : hooks(std::move(hooks_in)),
        request_seconds(request_seconds_in),
        now_unix(std::move(now_unix_in)),
        metrics(std::move(build)) {}
  ServerState(const ServerState&) = delete;
  ServerState& operator=(const ServerState&) = delete;

  Hooks hooks;
  double request_seconds;  // a request that takes longer is given up
  std::function<std::int64_t()> now_unix;
  ServerMetrics metrics;
  ResponseStore responses;               // of /v1/responses
  std::atomic<bool> draining = false;    // set once: no new generations
  std::atomic<bool> loading = false;     // models that the server starts with are not there yet
};

// Of one request. There is one way to make it, and it takes everything.
struct Context {
  Context(ServerState& server_in, ModelDirectory& models_in, AccessRules access_in, Log log_in)
      : server(server_in), models(models_in), access(std::move(access_in)), log(std::move(log_in)) {}

  ServerState& server;
  ModelDirectory& models;  // notes what the request does
  AccessRules access;      // as they were when it came
  Log log;                 // says in each line which request it is
};

}  // namespace godwit::serve
