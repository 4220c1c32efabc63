// What an engine has done and does, readable from any thread at any time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace godwit::decode {

// Counts only grow. Each number is right by itself; two may be of neighbouring steps.
struct EngineStats {
  // Now.
  std::int64_t rows_running = 0, rows_paused = 0, rows_waiting = 0;  // waiting: queued, or preempted
  std::int64_t resident_bytes = 0, budget_bytes = 0;                 // of state; the budget is that of rows
  double heartbeat_age = 0;  // seconds since the engine thread last looked for work: large in a step, and when idle
  // Since the model was opened.
  std::int64_t requests = 0, finished = 0, cancelled = 0, failed = 0;
  std::int64_t steps = 0, prompt_tokens = 0, answer_tokens = 0;  // prompt tokens that were computed
  std::int64_t preemptions = 0;
  std::int64_t prefix_hits = 0, prefix_tokens = 0;  // prompts that began with tokens computed before, and how many of those
  double queue_seconds = 0;                         // from submission to a row, summed over requests
};

// Written by the engine thread alone.
class EngineCounters {
 public:
  using Count = std::atomic<std::int64_t>;

  Count rows_running = 0, rows_paused = 0, rows_waiting = 0, resident_bytes = 0, budget_bytes = 0;
  Count requests = 0, finished = 0, cancelled = 0, failed = 0;
  Count steps = 0, prompt_tokens = 0, answer_tokens = 0, preemptions = 0, prefix_hits = 0, prefix_tokens = 0;
  Count queue_nanoseconds = 0;

  void beat() { heartbeat_.store(now(), std::memory_order_relaxed); }

  EngineStats snapshot() const {
    return {.rows_running = rows_running,
            .rows_paused = rows_paused,
            .rows_waiting = rows_waiting,
            .resident_bytes = resident_bytes,
            .budget_bytes = budget_bytes,
            .heartbeat_age = static_cast<double>(now() - heartbeat_.load(std::memory_order_relaxed)) * 1e-9,
            .requests = requests,
            .finished = finished,
            .cancelled = cancelled,
            .failed = failed,
            .steps = steps,
            .prompt_tokens = prompt_tokens,
            .answer_tokens = answer_tokens,
            .preemptions = preemptions,
            .prefix_hits = prefix_hits,
            .prefix_tokens = prefix_tokens,
            .queue_seconds = static_cast<double>(queue_nanoseconds) * 1e-9};
  }

 private:
  static std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  std::atomic<std::int64_t> heartbeat_ = now();
};

}  // namespace godwit::decode
