// The one place where exceptions of MLX (std::invalid_argument, std::runtime_error, ...) become Error.
#pragma once

#include <exception>
#include <utility>

#include "base/error.h"

namespace godwit {

// Runs `body`; anything thrown that is not already an Error becomes Error{internal} "[origin] <message of
// MLX>".
template <typename Body>
decltype(auto) translate_mx_errors(std::string_view origin, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    throw Error(ErrorCode::internal, origin, e.what());
  }
}

}  // namespace godwit
