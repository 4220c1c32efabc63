#include "serve/dispatch.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "serve/access.h"
#include "serve/dialect.h"
#include "serve/observed_models.h"
#include "serve/openai_json.h"
#include "serve/request_error.h"
#include "serve/routes.h"

namespace godwit::serve {
namespace {

constexpr std::size_t kMostIdLength = 128;

std::string normal_path(std::string_view target) {
  std::string_view path = target.substr(0, target.find('?'));
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (path.starts_with("/v1/")) path.remove_prefix(3);
  return std::string(path);
}

bool fits(const Route& route, std::string_view path) {
  if (route.path.size() > 1 && route.path.ends_with('/'))
    return path.starts_with(route.path) && path.size() > route.path.size();
  return route.path == path;
}

// HEAD is served wherever GET is; the connection leaves the body out.
const Route& find_route(Request& request) {
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  std::string allow;
  for (const Route& route : routes()) {
    if (!fits(route, request.path)) continue;
    if (route.method == method) {
      request.rest = percent_decode(
          std::string_view(request.path).substr(std::min(route.path.size(), request.path.size())));
      return route;
    }
    allow += allow.empty() ? "" : ", ";
    allow += route.method == "GET" ? "GET, HEAD" : route.method;
  }
  const std::string_view asked = std::string_view(request.target).substr(0, request.target.find('?'));
  if (allow.empty())
    throw RequestError(ErrorCode::not_found, fmt::format("there is nothing at {}", asked),
                       {.code = "not_found"});
  throw RequestError(ErrorCode::invalid_argument,
                     fmt::format("{} does not answer {}; it answers {}", asked, request.method, allow),
                     {.code = "method_not_allowed", .status = 405, .allow = allow + ", OPTIONS"});
}

// Every line about a request says which.
Log log_of(const std::string& id, const Context& shared) {
  return Log([id, log = shared.log, line = shared.server.hooks.request_line](LogLevel level, std::string_view message) {
    if (line) return line(level, id, message);
    if (level == LogLevel::error) return log.error("{}: {}", id, message);
    if (level == LogLevel::warning) return log.warning("{}: {}", id, message);
    log.info("{}: {}", id, message);
  });
}

// What lives as long as the answer to one request.
struct Scope {
  Scope(const Context& shared, const std::string& id)
      : models(shared.models, record, shared.server.metrics,
               [&flag = shared.server.draining] { return flag.load(); }),
        context(shared.server, models, shared.access, log_of(id, shared)) {}

  RequestRecord record;
  ObservedModels models;
  Context context;
};

void check_admission(const Route& route, const Context& context) {
  if (route.is_generation && context.server.draining)
    throw RequestError(ErrorCode::overloaded, "the server is shutting down", {.code = "draining", .status = 503});
}

// Whoever may stop the server or drop what it holds: a holder of a key, or without keys a program on this machine.
void check_admin(const Request& request, const Context& context) {
  if (context.access.key_hashes.empty() && !request.client.is_loopback)
    throw RequestError(ErrorCode::invalid_argument, "without an API key this is for programs on the server's machine only",
                       {.code = "admin_not_allowed", .status = 403});
}

Response answer(Request& request, Scope& scope) {
  Context& context = scope.context;
  if (const auto& refusal = request.refusal)
    throw RequestError(ErrorCode::invalid_argument, refusal->message, {.code = refusal->code, .status = refusal->status});
  check_host(request, context.access);
  if (request.method == "OPTIONS") return preflight(request, context.access);
  const Route& route = find_route(request);
  scope.record.route = route.path;
  if (route.method != "GET") check_origin(request, context.access);
  if (!route.is_public) check_key(request, context.access);
  if (route.is_admin) check_admin(request, context);
  check_admission(route, context);
  return route.handle(request, context);
}

// Endpoints look after their client whenever they wait, and after the time the request has taken.
void limit_time(Request& request, const Context& context) {
  const auto end = RequestRecord::Clock::now() + std::chrono::duration<double>(context.server.request_seconds);
  request.check_alive = [check = std::move(request.check_alive), end, limit = context.server.request_seconds] {
    check();
    if (RequestRecord::Clock::now() > end)
      throw RequestError(ErrorCode::overloaded, fmt::format("the request took longer than {} seconds", limit),
                         {.code = "timeout", .status = 504});
  };
}

// A stream of events. Once it has begun its status is gone, so an error becomes its last event.
struct GuardedEvents {
  std::shared_ptr<Scope> scope;  // first, so that it outlives what the events hold
  std::function<void(EventSink&)> events;
  const Request& request;

  void operator()(EventSink& sink) const {
    try {
      events(sink);
    } catch (const std::exception& error) {
      const Failure failure = failure_of(error);
      if (failure.status == 499) throw;  // nobody is left to tell
      scope->record.error = failure.fields.code.empty() ? "internal" : failure.fields.code;
      scope->context.log.warning("stream failed: {}", failure.message);
      send_error(sink, failure, dialect_of(request.path), request.id);
    }
  }
};

Response failed(const std::exception& error, const Request& request, Scope& scope) {
  const Failure failure = failure_of(error);
  scope.record.error = failure.fields.code.empty() ? fmt::format("{}", failure.status) : failure.fields.code;
  const Log& log = scope.context.log;
  if (failure.status == 503 || failure.status == 504)  // the way a server ends, or a limit: no fault
    log.warning("{}", error.what());
  else if (failure.status >= 500)
    log.error("{}", error.what());
  Response response = error_response(failure, dialect_of(request.path), request.id);
  response.close = response.close || request.refusal.has_value();
  return response;
}

void close_record(Scope& scope, const Request& request, int status) {
  RequestRecord& record = scope.record;
  record.status = status;
  scope.context.server.metrics.count(record);
  if (scope.context.server.hooks.access_line) scope.context.server.hooks.access_line(record);
  if (record.keeps_text && record.submitted > 0) scope.context.server.hooks.prompt_line(record, request.body);
}

void take_id(Request& request) {
  const auto given = request.headers.find("X-Request-Id");
  const auto is_printable = [](char c) { return c > ' ' && c < 127; };
  if (given && !given->empty() && given->size() <= kMostIdLength && std::ranges::all_of(*given, is_printable))
    request.id = *given;
  else
    request.id = random_id("req_");
}

}  // namespace

Response dispatch(Request& request, const Context& shared) {
  take_id(request);
  request.path = normal_path(request.target);
  const auto scope = std::make_shared<Scope>(shared, request.id);
  RequestRecord& record = scope->record;
  record = {.id = request.id,
            .method = request.method,
            .path = std::string(std::string_view(request.target).substr(0, request.target.find('?'))),
            .client = request.client.address,
            .arrived = RequestRecord::Clock::now(),
            .keeps_text = static_cast<bool>(shared.server.hooks.prompt_line)};
  limit_time(request, shared);
  Response response;
  try {
    response = answer(request, *scope);
  } catch (const std::exception& error) {
    response = failed(error, request, *scope);
  }
  record.is_stream = static_cast<bool>(response.events);
  if (response.events) response.events = GuardedEvents{scope, std::move(response.events), request};
  response.ended = [scope, &request](int status) { close_record(*scope, request, status); };
  response.headers.add("x-request-id", request.id);
  if (dialect_of(request.path) == Dialect::anthropic) response.headers.add("request-id", request.id);
  add_cors_headers(request, shared.access, response);
  return response;
}

}  // namespace godwit::serve
