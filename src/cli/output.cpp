#include "cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace godwit::cli {

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
