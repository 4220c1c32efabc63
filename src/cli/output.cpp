#include "cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace godwit::cli {

std::string without_control_characters(std::string text, std::string_view kept) {
  for (char& c : text) {
    const bool is_control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (is_control && kept.find(c) == std::string_view::npos) c = '?';
  }
  return text;
}

std::string printable(std::string_view text) {
  constexpr std::size_t kMost = 2000;
  return without_control_characters(std::string(text.substr(0, kMost))) + (text.size() > kMost ? "..." : "");
}

void Output::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE) {
      throw OutputClosed();
    } else if (errno != EINTR) {
      fail(ErrorCode::io, "output", "cannot write the result: {}", std::strerror(errno));
    }
  }
}

bool Output::is_terminal() const { return ::isatty(descriptor_) == 1; }

}  // namespace godwit::cli
