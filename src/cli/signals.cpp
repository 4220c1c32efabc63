#include "cli/signals.h"

#include <pthread.h>
#include <unistd.h>

#include <utility>

namespace godwit::cli {

Signals::Signals() {
  sigemptyset(&set_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set_, number);
  pthread_sigmask(SIG_BLOCK, &set_, &before_);
  thread_ = std::thread([this] { listen(); });
}

Signals::~Signals() {
  is_over_ = true;
  pthread_kill(thread_.native_handle(), SIGTERM);  // wakes it; nobody else can take this one
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Signals::Wish Signals::wait() {
  can_wait_ = true;
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [this] { return wants_end_ || wants_reload_; });
  if (wants_end_) return Wish::end;
  wants_reload_ = false;
  return Wish::reload;
}

void Signals::ask_for_end() {
  const std::lock_guard lock(mutex_);
  wants_end_ = true;
  arrived_.notify_all();
}

void Signals::listen() {
  for (bool is_second = false;;) {
    int number = 0;
    sigwait(&set_, &number);
    if (is_over_) return;
    if (number == SIGHUP) {
      const std::lock_guard lock(mutex_);
      wants_reload_ = true;
      arrived_.notify_all();
      continue;
    }
    if (std::exchange(is_second, true) || !can_wait_) _exit(128 + number);
    ask_for_end();
  }
}

}  // namespace godwit::cli
