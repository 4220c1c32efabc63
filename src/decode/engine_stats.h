// What an engine has done and does, readable from any thread at any time.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace godwit::decode {

inline constexpr std::array kStepSeconds = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0};
inline constexpr std::array kBatchRows = {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0};

// How many values were at most each bound and above the one before; the last number is of those past all bounds.
template <std::size_t Bounds>
struct Distribution {
  std::array<std::int64_t, Bounds + 1> counts = {};
  double sum = 0;
};

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
  Distribution<kStepSeconds.size()> prefill_step_seconds = {}, decode_step_seconds = {};  // with tokens of prompts, without
  Distribution<kBatchRows.size()> batch_rows = {};                                        // of each step
  double queue_seconds = 0;                         // from submission to a row, summed over requests
};

// A distribution in the making; one thread observes.
template <const auto& Bounds>
class DistributionCounter {
 public:
  void observe(double value) {
    const auto at = std::ranges::lower_bound(Bounds, value) - Bounds.begin();
    counts_[static_cast<std::size_t>(at)].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
  }
  Distribution<Bounds.size()> snapshot() const {
    Distribution<Bounds.size()> now;
    for (std::size_t i = 0; i < counts_.size(); ++i) now.counts[i] = counts_[i].load(std::memory_order_relaxed);
    now.sum = sum_.load(std::memory_order_relaxed);
    return now;
  }

 private:
  std::array<std::atomic<std::int64_t>, Bounds.size() + 1> counts_ = {};
  std::atomic<double> sum_ = 0;
};

// Written by the engine thread alone.
class EngineCounters {
 public:
  using Count = std::atomic<std::int64_t>;

  Count rows_running = 0, rows_paused = 0, rows_waiting = 0, resident_bytes = 0, budget_bytes = 0;
  Count requests = 0, finished = 0, cancelled = 0, failed = 0;
  Count steps = 0, prompt_tokens = 0, answer_tokens = 0, preemptions = 0, prefix_hits = 0, prefix_tokens = 0;
  Count queue_nanoseconds = 0;
  DistributionCounter<kStepSeconds> prefill_step_seconds, decode_step_seconds;
  DistributionCounter<kBatchRows> batch_rows;

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
            .prefill_step_seconds = prefill_step_seconds.snapshot(),
            .decode_step_seconds = decode_step_seconds.snapshot(),
            .batch_rows = batch_rows.snapshot(),
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
