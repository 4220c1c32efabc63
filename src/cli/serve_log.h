// What `godwit serve` writes while it runs: lines on standard error, as text or JSON, and on request a file
// of prompts.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/log.h"
#include "serve/context.h"

namespace godwit::cli {

struct LogFlags {
  std::string level;            // "": info on a terminal and as JSON, else warning
  std::string format = "text";  // or json
  std::string prompts;          // a file; "": prompts and answers are kept nowhere
};

// Several threads write; a line is one write, so lines stay whole. Control characters are escaped, so that
// nothing that a client sends can begin a line.
class ServeLog {
 public:
  // Throws Error{io} naming the file of prompts that cannot be written.
  ServeLog(const LogFlags& flags, bool is_terminal);
  ~ServeLog();

  Log log() const;
  // A line that is shown whatever the level.
  void announce(std::string_view text) const;
  serve::Hooks hooks() const;
  // Opens the file of prompts again, for programs that move it away.
  void reopen() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// "a\nb" -> "a\x0ab": control characters and the escape character itself.
std::string escape_controls(std::string_view text);

}  // namespace godwit::cli
