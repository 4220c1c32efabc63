#include "base/thread_pool.h"

#include <chrono>

#include "base/error.h"

namespace godwit {
namespace {

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Spins until `done`, for about 50 microseconds: longer than the serial work between two kernels of a step,
// shorter than what a sleep and a wake-up cost twice. False when time ran out.
template <class Done>
bool spin_until(Done done) {
  constexpr auto kPatience = std::chrono::microseconds(50);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    for (int i = 0; i < 32; i++) {
      if (done()) return true;
      relax();
    }
    if (std::chrono::steady_clock::now() >= deadline) return done();
  }
}

}  // namespace

ThreadPool::ThreadPool(int threads) : shares_(static_cast<std::size_t>(threads < 1 ? 1 : threads)) {
  if (threads < 1)
    fail(ErrorCode::invalid_argument, "thread_pool", "{} threads: at least 1 is needed", threads);
  try {
    for (int self = 1; self < threads; self++) workers_.emplace_back([this, self] { worker_loop(self); });
  } catch (...) {
    stopping_ = true;
    publish(job_ + 1);
    for (std::thread& worker : workers_) worker.join();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  publish(job_ + 1);
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_job(int parts, Call call, void* body) {
  GODWIT_CHECK(parts <= kMaxParts, "{} parts", parts);
  if (parts <= 1 || workers_.empty()) return run_alone(parts, call, body);
  const std::uint32_t job = job_.load(std::memory_order_relaxed) + 1;
  const std::uint64_t threads = shares_.size();
  call_ = call;
  body_ = body;
  pending_.store(parts, std::memory_order_relaxed);
  for (std::uint64_t i = 0; i < threads; i++) {
    const auto count = static_cast<std::uint64_t>(parts);
    const std::uint64_t first = count * i / threads, end = count * (i + 1) / threads;
    // Releases call_ and body_ to whoever takes a part of this job.
    shares_[i].word.store(std::uint64_t{job} << 32 | first << 16 | end, std::memory_order_release);
  }
  publish(job);
  work(0, job);
  wait_for_parts();
  if (!failure_) return;
  const std::exception_ptr failure = std::exchange(failure_, nullptr);
  std::rethrow_exception(failure);
}

void ThreadPool::run_alone(int parts, Call call, void* body) {
  std::exception_ptr failure;
  for (int part = 0; part < parts; part++) {
    try {
      call(body, part);
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

// Makes `job` visible and wakes those who sleep. A worker counts itself as a sleeper before it looks at job_
// for the last time, and both are sequentially consistent: one of the two sees the other.
void ThreadPool::publish(std::uint32_t job) {
  job_.store(job);
  if (sleepers_.load() == 0) return;
  { const std::lock_guard lock(mutex_); }  // a worker between its last look and its wait holds the mutex
  wake_.notify_all();
}

void ThreadPool::work(int self, std::uint32_t job) {
  const int count = threads();
  for (int i = 0; i < count; i++) {
    Share& share = shares_[static_cast<std::size_t>((self + i) % count)];
    int part = 0;
    while (take(share, job, &part)) run_part(part);
  }
}

bool ThreadPool::take(Share& share, std::uint32_t job, int* part) {
  std::uint64_t word = share.word.load(std::memory_order_acquire);
  while (word >> 32 == job && (word >> 16 & 0xffff) < (word & 0xffff)) {
    if (share.word.compare_exchange_weak(word, word + 0x10000, std::memory_order_acquire)) {
      *part = static_cast<int>(word >> 16 & 0xffff);
      return true;
    }
  }
  return false;
}

void ThreadPool::run_part(int part) {
  try {
    call_(body_, part);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_ || part < failed_part_) {
      failure_ = std::current_exception();
      failed_part_ = part;
    }
  }
  if (pending_.fetch_sub(1) != 1 || !caller_sleeps_.load()) return;
  { const std::lock_guard lock(mutex_); }
  done_.notify_one();
}

void ThreadPool::wait_for_parts() {
  const auto done = [this] { return pending_.load() == 0; };
  if (spin_until(done)) return;
  std::unique_lock lock(mutex_);
  caller_sleeps_ = true;
  done_.wait(lock, done);
  caller_sleeps_ = false;
}

// False when the pool is stopping.
bool ThreadPool::wait_for_job(std::uint32_t seen) {
  // Stopping is looked at by itself: who comes late to a job may have seen the number behind it, which is that of the end.
  const auto changed = [this, seen] { return stopping_.load() || job_.load() != seen; };
  if (!spin_until(changed)) {
    std::unique_lock lock(mutex_);
    sleepers_++;
    wake_.wait(lock, changed);
    sleepers_--;
  }
  return !stopping_;
}

void ThreadPool::worker_loop(int self) {
  std::uint32_t seen = 0;
  while (wait_for_job(seen)) {
    seen = job_.load();
    work(self, seen);
  }
}

}  // namespace godwit
