#include "serve/dispatch.h"

#include <algorithm>

#include "serve/access.h"
#include "serve/dialect.h"
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
  if (route.path.ends_with('/')) return path.starts_with(route.path) && path.size() > route.path.size();
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
      send_error(sink, failure, dialect_of(request.path), request.id);
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

Response error_response(int status, std::string_view code, std::string_view message) {
  return error_response({status, std::string(message), {.code = std::string(code)}}, Dialect::openai, "");
}

Response dispatch(Request& request, Context& context) {
  take_id(request);
  request.path = normal_path(request.target);
  const Dialect dialect = dialect_of(request.path);
  Response response;
  try {
    response = answer(request, context);
    if (response.events) response.events = guarded(std::move(response.events), request, context.log);
  } catch (const std::exception& error) {
    response = error_response(failure_of(error), dialect, request.id);
    if (response.status == 503)  // the way a server ends, no fault
      context.log.warning("{}: {}", request.id, error.what());
    else if (response.status >= 500)
      context.log.error("{}: {}", request.id, error.what());
  }
  response.headers.add("x-request-id", request.id);
  if (dialect == Dialect::anthropic) response.headers.add("request-id", request.id);
  add_cors_headers(request, context.access, response);
  return response;
}

}  // namespace godwit::serve
