// Lines of standard input, with Ctrl-C as an event of its own. Works for terminals, pipes and files.
#pragma once

#include <string>

#include "cli/interrupt.h"

namespace godwit::cli {

class LineReader {
 public:
  // `descriptor` and `interrupts` must outlive the reader.
  LineReader(int descriptor, InterruptGuard& interrupts) : descriptor_(descriptor), interrupts_(interrupts) {}

  enum class Event { line, end, interrupt };
  // On `line`, `line` holds it without its line end (LF or CRLF); a last line may lack one. Throws Error{io}.
  Event next(std::string& line);

 private:
  bool take_line(std::string& line);

  int descriptor_;
  InterruptGuard& interrupts_;
  std::string pending_;  // read but not yet handed out
  bool at_end_ = false;
};

}  // namespace godwit::cli
