// The one exception type of the engine. Every failure that a user, a file or a request can cause is an Error
// that names where it arose ("[safetensors] ...") and the offending value. Only cli, serve and the engine's
// row guard catch.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace godwit {

// One code maps to one HTTP status (serve) and one exit code (cli).
enum class ErrorCode {
  invalid_argument,  // a request or flag holds a value that cannot be served
  not_found,         // file, model, route or tensor that does not exist
  io,                // the operating system refused a read, a write or a socket
  corrupt_file,      // a file contradicts its own format
  unsupported,       // well formed, but nothing here can serve it
  context_overflow,  // more tokens than the model's context
  context_over_budget,  // more tokens than the memory for them holds, however long one waits
  overloaded,        // a queue or budget is full; trying later may work
  network,           // a peer failed or answered something unusable
  cancelled,         // the caller asked to stop
  internal,          // a broken invariant of ours
};

class Error : public std::runtime_error {
 public:
  // `origin` is a short lower-case tag; what() reads "[origin] message".
  Error(ErrorCode code, std::string_view origin, std::string_view message)
      : std::runtime_error(fmt::format("[{}] {}", origin, message)), code_(code) {}

  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

// Throws Error with a formatted message: fail(ErrorCode::io, "file_map", "{}: cannot open", path).
template <typename... Args>
[[noreturn]] void fail(ErrorCode code, std::string_view origin, fmt::format_string<Args...> format,
                       Args&&... args) {
  throw Error(code, origin, fmt::format(format, std::forward<Args>(args)...));
}

namespace detail {
[[noreturn]] void check_failed(const char* condition, const char* file, int line, std::string_view message);
}

}  // namespace godwit

// An invariant of ours, never reachable from file or request content. Throws Error{internal}.
#define GODWIT_CHECK(condition, ...)                                                                 \
  do {                                                                                               \
    if (!(condition))                                                                                \
      ::godwit::detail::check_failed(#condition, __FILE__, __LINE__, ::fmt::format("" __VA_ARGS__)); \
  } while (false)
