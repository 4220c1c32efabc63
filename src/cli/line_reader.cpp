#include "cli/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace godwit::cli {

bool LineReader::take_line(std::string& line) {
  const std::size_t newline = pending_.find('\n');
  if (newline == std::string::npos && !(at_end_ && !pending_.empty())) return false;
  line = pending_.substr(0, newline);
  pending_.erase(0, newline == std::string::npos ? newline : newline + 1);
  if (line.ends_with('\r')) line.pop_back();
  return true;
}

LineReader::Event LineReader::next(std::string& line) {
  while (true) {
    if (take_line(line)) return Event::line;
    if (at_end_) return Event::end;
    std::array<pollfd, 2> watched = {pollfd{descriptor_, POLLIN, 0},
                                     pollfd{interrupts_.descriptor(), POLLIN, 0}};
    const int ready = poll(watched.data(), watched.size(), -1);
    if (ready < 0 && errno != EINTR)
      fail(ErrorCode::io, "cli", "cannot wait for input: {}", std::strerror(errno));
    if (interrupts_.take()) return Event::interrupt;
    if (ready < 1 || watched[0].revents == 0) continue;
    std::array<char, 4096> buffer;
    const ssize_t count = read(descriptor_, buffer.data(), buffer.size());
    if (count < 0 && errno != EINTR)
      fail(ErrorCode::io, "cli", "cannot read the input: {}", std::strerror(errno));
    if (count == 0) at_end_ = true;
    if (count > 0) pending_.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace godwit::cli
