#include "support/hang_report.h"

#include <gtest/gtest.h>

#if defined(__GLIBC__)

#include <execinfo.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace godwit::testing_support {
namespace {

constexpr int kSignal = SIGUSR2;

void say(const std::string& text) { static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size())); }

void write_stack(int) {
  void* frames[64];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, 64), STDERR_FILENO);
}

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// More than a signal handler may do for sure; the test is lost without it. One thread after the other, with time for each
// to write.
void report(int) {
  say("This test runs for too long. Its threads:\n");
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string id = task.path().filename();
    say("thread " + id + " (" + first_line(task.path() / "comm") + "), system call " +
        first_line(task.path() / "syscall") + "\n");
    ::syscall(SYS_tgkill, ::getpid(), std::atoi(id.c_str()), kSignal);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

class Alarm : public testing::EmptyTestEventListener {
 public:
  explicit Alarm(unsigned seconds) : seconds_(seconds) {}
  void OnTestStart(const testing::TestInfo&) override { ::alarm(seconds_); }
  void OnTestEnd(const testing::TestInfo&) override { ::alarm(0); }

 private:
  unsigned seconds_;
};

}  // namespace

void report_hangs() {
  const char* const patience = std::getenv("GODWIT_TEST_PATIENCE");
  if (!patience) return;
  void* frame[1];
  ::backtrace(frame, 1);  // loads what it needs now, not in a signal handler
  handle(kSignal, write_stack);
  handle(SIGALRM, report);
  testing::UnitTest::GetInstance()->listeners().Append(new Alarm(static_cast<unsigned>(std::atoi(patience))));
}

}  // namespace godwit::testing_support

#else

namespace godwit::testing_support {
void report_hangs() {}
}  // namespace godwit::testing_support

#endif
