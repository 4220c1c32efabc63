#include "serve/dialect.h"

#include "base/error.h"

namespace godwit::serve {
namespace {

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::unsupported:
    case ErrorCode::context_overflow:
    case ErrorCode::context_over_budget:
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
  if (code == ErrorCode::context_over_budget) return "context_over_budget";
  if (code == ErrorCode::overloaded) return "queue_full";
  return "";
}

std::string_view openai_type(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  if (status == 429) return "rate_limit_error";
  if (status == 501) return "not_supported_error";  // llama.cpp's, whose routes they are
  return status >= 500 ? "server_error" : "invalid_request_error";
}

std::string_view anthropic_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 501:
      return "invalid_request_error";
    case 504:
      return "timeout_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

Json openai_error(const Failure& failure) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  Json error{{"message", failure.message},
             {"type", openai_type(failure.status)},
             {"param", or_null(failure.fields.param)},
             {"code", or_null(failure.fields.code)}};
  if (failure.fields.extra.is_object()) error.update(failure.fields.extra);
  return {{"error", std::move(error)}};
}

}  // namespace

Dialect dialect_of(std::string_view path) {
  if (path == "/messages" || path.starts_with("/messages/")) return Dialect::anthropic;
  if (path == "/api" || path.starts_with("/api/")) return Dialect::ollama;
  return Dialect::openai;
}

Failure failure_of(const std::exception& error) {
  if (const auto* request = dynamic_cast<const RequestError*>(&error)) {
    Failure failure{status_of(request->code()), request->message(), request->fields()};
    if (failure.fields.status != 0) failure.status = failure.fields.status;
    if (failure.fields.code.empty()) failure.fields.code = default_code(request->code());
    return failure;
  }
  if (const auto* own = dynamic_cast<const Error*>(&error))
    return {status_of(own->code()), plain_message(own->what()), {.code = default_code(own->code())}};
  return {500, plain_message(error.what()), {}};
}

Json error_json(const Failure& failure, Dialect dialect, std::string_view request_id) {
  switch (dialect) {
    case Dialect::anthropic:
      return {{"type", "error"},
              {"error", {{"type", anthropic_type(failure.status)}, {"message", failure.message}}},
              {"request_id", request_id}};
    case Dialect::ollama:
      return {{"error", failure.message}};
    case Dialect::openai:
      break;
  }
  return openai_error(failure);
}

Response error_response(const Failure& failure, Dialect dialect, std::string_view request_id) {
  Response response = Response::json(error_json(failure, dialect, request_id), failure.status);
  if (failure.status == 401) response.headers.add("WWW-Authenticate", "Bearer");
  if (failure.status == 405) response.headers.add("Allow", failure.fields.allow);
  if (failure.status == 429 || failure.status == 503) response.headers.add("Retry-After", "1");
  // Clients repeat every 5xx; one that would fail again the same way says so.
  if (failure.status == 500 || failure.status == 501) response.headers.add("x-should-retry", "false");
  response.close = failure.status == 503;
  return response;
}

void send_error(EventSink& sink, const Failure& failure, Dialect dialect, std::string_view request_id) {
  const std::string data = dump_json(error_json(failure, dialect, request_id));
  if (dialect == Dialect::anthropic)
    sink.send("error", data);
  else
    sink.send(data);
}

}  // namespace godwit::serve
