// Wakes the engine thread: work has come, a job was cancelled, a reader has made room.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

namespace godwit::decode {

class Doorbell {
 public:
  void ring() {
    const std::lock_guard lock(mutex_);
    is_rung_ = true;
    rung_.notify_all();
  }

  // Blocks until it has been rung since the last wait, or for `seconds`.
  void wait(std::optional<double> seconds = {}) {
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return is_rung_; };
    if (seconds)
      rung_.wait_for(lock, std::chrono::duration<double>(*seconds), ready);
    else
      rung_.wait(lock, ready);
    is_rung_ = false;
  }

 private:
  std::mutex mutex_;  // guards is_rung_
  std::condition_variable rung_;
  bool is_rung_ = false;
};

}  // namespace godwit::decode
