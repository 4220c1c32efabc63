#include "serve/dispatch.h"

#include <algorithm>

#include "serve/access.h"
#include "serve/openai_json.h"
#include "serve/request_error.h"
#include "serve/routes.h"

namespace godwit::serve {
namespace {

constexpr std::size_t kMostIdLength = 128;

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::unsupported:
    case ErrorCode::context_overflow:
      return 400;
    case ErrorCode::not_found:
      return 404;
    case ErrorCode::overloaded:
      return 429;
    case ErrorCode::cancelled:
      return 499;
    case ErrorCode::network:
      return 502;
    case ErrorCode::io:
    case ErrorCode::corrupt_file:
    case ErrorCode::internal:
      break;
  }
  return 500;
}

std::string default_code(ErrorCode code) {
  if (code == ErrorCode::context_overflow) return "context_length_exceeded";
  if (code == ErrorCode::overloaded) return "queue_full";
  return "";
}

std::string_view type_of(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  if (status == 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

// What went wrong, brought to the terms of this protocol.
struct Failure {
  int status = 500;
  std::string message;
  ErrorFields fields;
};

Failure failure_of(const std::exception& error) {
  if (const auto* request = dynamic_cast<const RequestError*>(&error)) {
    Failure failure{status_of(request->code()), request->message(), request->fields()};
    if (failure.fields.status != 0) failure.status = failure.fields.status;
    if (failure.fields.code.empty()) failure.fields.code = default_code(request->code());
    return failure;
  }
  if (const auto* own = dynamic_cast<const Error*>(&error))
    return {status_of(own->code()), own->what(), {.code = default_code(own->code())}};
  return {500, error.what(), {}};
}

Json error_json(const Failure& failure) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  Json error{{"message", failure.message},
             {"type", type_of(failure.status)},
             {"param", or_null(failure.fields.param)},
             {"code", or_null(failure.fields.code)}};
  if (failure.fields.extra.is_object()) error.update(failure.fields.extra);
  return {{"error", std::move(error)}};
}

Response to_response(const Failure& failure) {
  Response response = Response::json(error_json(failure), failure.status);
  if (failure.status == 401) response.headers.add("WWW-Authenticate", "Bearer");
  if (failure.status == 405) response.headers.add("Allow", failure.fields.allow);
  if (failure.status == 429 || failure.status == 503) response.headers.add("Retry-After", "1");
  // Clients repeat every 5xx; one that would fail again the same way says so.
  if (failure.status == 500) response.headers.add("x-should-retry", "false");
  response.close = failure.status == 503;
  return response;
}

std::string normal_path(std::string_view target) {
  std::string_view path = target.substr(0, target.find('?'));
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (path.starts_with("/v1/")) path.remove_prefix(3);
  return std::string(path);
}

bool fits(const Route& route, std::string_view path) {
  if (route.path.ends_with('/')) return path.starts_with(route.path) && path.size() > route.path.size();
  return route.path == path;
}

// HEAD is served wherever GET is; the connection leaves the body out.
const Route& find_route(Request& request) {
  request.path = normal_path(request.target);
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

Response answer(Request& request, Context& context) {
  check_host(request, context.access);
  if (request.method == "OPTIONS") return preflight(request, context.access);
  const Route& route = find_route(request);
  if (route.method != "GET") check_origin(request, context.access);
  if (!route.is_public) check_key(request, context.access);
  if (route.is_generation && context.draining)
    throw RequestError(ErrorCode::overloaded, "the server is shutting down",
                       {.code = "draining", .status = 503});
  return route.handle(request, context);
}

// Once a stream has begun its status is gone, so an error becomes its last event.
std::function<void(EventSink&)> guarded(std::function<void(EventSink&)> events, const Request& request,
                                        const Log& log) {
  return [events = std::move(events), &request, &log](EventSink& sink) {
    try {
      events(sink);
    } catch (const std::exception& error) {
      const Failure failure = failure_of(error);
      if (failure.status == 499) throw;  // nobody is left to tell
      log.warning("{}: stream failed: {}", request.id, failure.message);
      sink.send(dump_json(error_json(failure)));
    }
  };
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

Response error_response(const std::exception& error) { return to_response(failure_of(error)); }

Response error_response(int status, std::string_view code, std::string_view message) {
  return to_response({status, std::string(message), {.code = std::string(code)}});
}

Response dispatch(Request& request, Context& context) {
  take_id(request);
  Response response;
  try {
    response = answer(request, context);
    if (response.events) response.events = guarded(std::move(response.events), request, context.log);
  } catch (const std::exception& error) {
    response = error_response(error);
    if (response.status == 503)  // the way a server ends, no fault
      context.log.warning("{}: {}", request.id, error.what());
    else if (response.status >= 500)
      context.log.error("{}: {}", request.id, error.what());
  }
  response.headers.add("x-request-id", request.id);
  add_cors_headers(request, context.access, response);
  return response;
}

}  // namespace godwit::serve
