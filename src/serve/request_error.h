// The Error of a request: beside the message it knows which field is at fault and the code that clients match
// on.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace godwit::serve {

// Fields of the error object beyond its message. Empty strings are sent as null.
struct ErrorFields {
  std::string param = {};  // "temperature", "messages[1].content"
  std::string code = {};   // "model_not_found", "context_length_exceeded"
  int status = 0;          // 0: follows from the ErrorCode (dispatch)
  Json extra = {};         // object: more keys of the error object; null: none
  std::string allow = {};  // 405: the methods of the path
};

class RequestError : public Error {
 public:
  RequestError(ErrorCode error_code, std::string message, ErrorFields fields)
      : Error(error_code, "request", message), message_(std::move(message)), fields_(std::move(fields)) {}

  const std::string& message() const { return message_; }  // without the origin tag
  const ErrorFields& fields() const { return fields_; }

 private:
  std::string message_;
  ErrorFields fields_;
};

// What an error says, without the tags of the places where it arose ("[engine] ...").
inline std::string plain_message(std::string_view what) {
  for (std::size_t end = 0; what.starts_with('['); what.remove_prefix(end + 2)) {
    end = what.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_", 1);
    if (end == std::string_view::npos || end < 2 || !what.substr(end).starts_with("] ")) break;
  }
  return std::string(what);
}

// Throws the 400 of a field that cannot be served: bad_field("top_p", "must be within 0..1, got {}", value).
template <typename... Args>
[[noreturn]] void bad_field(std::string_view param, fmt::format_string<Args...> format, Args&&... args) {
  throw RequestError(ErrorCode::invalid_argument,
                     fmt::format("'{}' {}", param, fmt::format(format, std::forward<Args>(args)...)),
                     {.param = std::string(param), .code = "invalid_value"});
}

// Throws the 400 of a field that is known and would change the answer, but is not served here.
[[noreturn]] inline void unserved_field(std::string_view param, std::string_view what) {
  throw RequestError(ErrorCode::unsupported, fmt::format("'{}': {} is not served here", param, what),
                     {.param = std::string(param), .code = "unsupported_parameter"});
}

}  // namespace godwit::serve
