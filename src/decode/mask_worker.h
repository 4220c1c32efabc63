// One thread that computes token masks beside the engine's, so that a step hides them.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace godwit::decode {

class MaskWorker {
 public:
  MaskWorker();
  // Runs what was posted to its end.
  ~MaskWorker();
  MaskWorker(const MaskWorker&) = delete;
  MaskWorker& operator=(const MaskWorker&) = delete;

  // In the order of posting. `work` must not throw.
  void post(std::function<void()> work);
  // Returns when everything that was posted before is done.
  void drain();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool is_busy_ = false;
  bool is_ending_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace godwit::decode
