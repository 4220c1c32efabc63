#include "decode/mask_worker.h"

namespace godwit::decode {

MaskWorker::MaskWorker() : thread_([this] { run(); }) {}

MaskWorker::~MaskWorker() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void MaskWorker::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void MaskWorker::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty() && !is_busy_; });
}

void MaskWorker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    is_busy_ = true;
    lock.unlock();
    work();
    work = nullptr;  // what it holds goes before drain() returns
    lock.lock();
    is_busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace godwit::decode
