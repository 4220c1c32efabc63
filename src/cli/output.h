// Standard output, where results go and nothing else. A reader that left (`| head -1`) ends the program
// without a word; a full disk is an Error.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace godwit::cli {

// The reader of standard output is gone. Not an Error: main.cpp leaves with kExitFailed and prints nothing.
class OutputClosed : public std::exception {
 public:
  const char* what() const noexcept override { return "standard output was closed by its reader"; }
};

class Output {
 public:
  // `descriptor` must outlive the object; it is not closed.
  explicit Output(int descriptor) : descriptor_(descriptor) {}

  // Writes all bytes at once, unbuffered, so that streamed text appears as it is made. Throws OutputClosed,
  // Error{io}.
  void write(std::string_view bytes);

  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    write(fmt::format(format, std::forward<Args>(args)...));
  }

  bool is_terminal() const;

 private:
  int descriptor_;
};

}  // namespace godwit::cli
