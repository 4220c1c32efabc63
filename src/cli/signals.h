// SIGINT, SIGTERM and SIGHUP of a server, taken one by one on a thread of their own.
#pragma once

#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace godwit::cli {

// Made before any other thread, so that all of them inherit the blocked mask and no signal lands elsewhere.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  enum class Wish { end, reload };
  // Blocks until somebody wants something. Before it is called for the first time SIGINT and SIGTERM end the
  // program at once: there is nothing to finish. After Wish::end a second one does not wait for the end; exit
  // code 128 + its number.
  Wish wait();
  // As SIGTERM, from inside the program.
  void ask_for_end();

 private:
  void listen();

  sigset_t set_ = {};
  sigset_t before_ = {};
  std::atomic<bool> is_over_ = false;
  std::atomic<bool> can_wait_ = false;
  std::mutex mutex_;  // guards what follows
  std::condition_variable arrived_;
  bool wants_end_ = false, wants_reload_ = false;
  std::thread thread_;
};

}  // namespace godwit::cli
