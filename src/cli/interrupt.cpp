#include "cli/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "base/error.h"
#include "cli/command.h"

namespace godwit::cli {
namespace {

// A signal handler gets no context, so the program's only global state is here. The pipe is made once and
// never closed: a handler that runs late on another thread can still write to it.
std::atomic<bool> counting = false;
std::atomic<int> reading_end = -1;
std::atomic<int> writing_end = -1;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

void on_interrupt(int) {
  if (!counting) _exit(kExitInterrupted);
  const int saved = errno;
  const char byte = 1;
  [[maybe_unused]] const ssize_t written =
      write(writing_end, &byte, 1);  // a full pipe is as good: it is readable
  errno = saved;
}

void handle(int signal_number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal_number, &action, nullptr);
}

}  // namespace

void install_signal_handlers() {
  std::array<int, 2> ends = {};
  if (pipe(ends.data()) != 0) fail(ErrorCode::io, "interrupt", "cannot make a pipe for Ctrl-C");
  for (const int end : ends) {
    fcntl(end, F_SETFL, O_NONBLOCK);
    fcntl(end, F_SETFD, FD_CLOEXEC);
  }
  reading_end = ends[0];
  writing_end = ends[1];
  handle(SIGINT, on_interrupt);
  handle(SIGPIPE, SIG_IGN);
}

InterruptGuard::InterruptGuard() { counting = true; }

InterruptGuard::~InterruptGuard() {
  counting = false;
  take();
}

InterruptGuard::Impatience::Impatience() { counting = false; }

InterruptGuard::Impatience::~Impatience() { counting = true; }

bool InterruptGuard::take() {
  bool pressed = false;
  std::array<char, 16> bytes;
  while (read(reading_end, bytes.data(), bytes.size()) > 0) pressed = true;
  return pressed;
}

int InterruptGuard::descriptor() const { return reading_end; }

}  // namespace godwit::cli
