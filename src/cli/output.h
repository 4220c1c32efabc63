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

// A message may quote a file or a template: its control characters must not reach a terminal, where they are commands.
// They become '?', but those in `kept`.
std::string without_control_characters(std::string text, std::string_view kept = "");

// Such text for one line of a terminal: cut where it is longer than a line should be.
std::string printable(std::string_view text);

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
