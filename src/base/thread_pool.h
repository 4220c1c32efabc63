// A fixed set of workers that run the parts of one piece of work together with the caller, then return: fork
// and join without allocation. Parts are pure functions of their index, so results do not depend on who runs
// them or on how many workers there are.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace godwit {

class ThreadPool {
 public:
  // `threads` counts the caller: threads - 1 workers are started. At least 1; throws Error{invalid_argument}
  // else.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  static constexpr int kMaxParts = 65535;

  int threads() const { return static_cast<int>(shares_.size()); }

  // Calls fn(part) once for every part in [0, parts), parts <= kMaxParts, and returns when all are done. Each
  // thread owns an equal run of consecutive parts; one that finishes early takes parts that another has not
  // begun, so a thread that the operating system keeps waiting delays no more than the part it holds. An
  // exception of a part is rethrown here after all parts have ended (the lowest part's, if several threw).
  // One caller at a time; not to be called from a part.
  template <class Fn>
  void run(int parts, Fn&& fn) {
    using Body = std::remove_reference_t<Fn>;
    run_job(
        parts, [](void* body, int part) { (*static_cast<Body*>(body))(part); },
        const_cast<void*>(static_cast<const void*>(std::addressof(fn))));
  }

 private:
  using Call = void (*)(void*, int);
  // Parts that one thread owns, in one word so that it changes as a whole: the job's number in bits 32-63,
  // the next part in bits 16-31, the end of the run in bits 0-15. A thread that comes late cannot take a part
  // of a job it has not seen.
  struct alignas(64) Share {
    std::atomic<std::uint64_t> word{0};
  };

  void run_job(int parts, Call call, void* body);
  void run_alone(int parts, Call call, void* body);
  void work(int self, std::uint32_t job);
  bool take(Share& share, std::uint32_t job, int* part);
  void run_part(int part);
  void publish(std::uint32_t job);
  void wait_for_parts();
  bool wait_for_job(std::uint32_t seen);
  void worker_loop(int self);

  std::vector<Share> shares_;
  Call call_ = nullptr;
  void* body_ = nullptr;
  std::atomic<int> pending_{0};  // parts not yet ended
  std::atomic<std::uint32_t> job_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<int> sleepers_{0};  // workers that wait on wake_
  std::atomic<bool> caller_sleeps_{false};
  std::mutex mutex_;  // guards the sleeps on wake_ and done_, and failure_
  std::condition_variable wake_, done_;
  std::exception_ptr failure_;
  int failed_part_ = 0;
  std::vector<std::thread> workers_;
};

// How many threads this process may keep busy: the CPUs of its affinity mask, bounded by the CPU quota of its
// cgroup (v2 cpu.max or v1 cfs quota, rounded up, of the group and its ancestors). At least 1. `root`
// replaces "/" in tests.
int cpu_allowance(const std::filesystem::path& root = "/");

}  // namespace godwit
