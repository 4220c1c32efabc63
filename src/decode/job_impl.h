// The shared half of a Job: the engine thread pushes events in, the holder takes them out.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <vector>

#include "decode/doorbell.h"
#include "decode/engine.h"

namespace godwit::decode {

struct Job::Impl {
  Impl(GenerationRequest wanted, std::uint64_t seed_in_use, std::shared_ptr<Doorbell> engine_bell)
      : request(std::move(wanted)), seed(seed_in_use), bell(std::move(engine_bell)) {}

  const GenerationRequest request;
  const std::uint64_t seed;
  const std::shared_ptr<Doorbell> bell;
  std::atomic<bool> cancelled = false;

  // Given by the mailbox: the place in the line, and since when.
  std::uint64_t arrival = 0;
  std::chrono::steady_clock::time_point queued_at = {};
  std::atomic<bool> has_begun = false;  // it has a place among the rows, or is over
  // The engine thread's: how many later requests were served while this one waited for memory.
  int passed_by = 0;

  bool comes_before(const Impl& other) const {
    return request.priority != other.request.priority ? request.priority < other.request.priority
                                                      : arrival < other.arrival;
  }

  void cancel(int choice);
  bool is_cancelled(int choice) const;
  // Of the choice that the event names. Behind fail() nothing is taken any more.
  void push(TokenEvent event, const Timings& timings);
  void fail(std::exception_ptr error);
  bool has_failed() const { return has_failed_; }
  // Rings once the holder has taken all but `rest` of the events. False: it has already.
  bool ring_below(std::size_t rest);
  std::size_t untaken() const { return untaken_.load(std::memory_order_relaxed); }
  // nullopt: finished, or the time is up (`timed_out`). Throws the error that ended the job, once.
  std::optional<TokenEvent> take(std::optional<double> seconds, bool& timed_out);
  Timings timings() const;

 private:
  bool is_over() const { return ended_choices_ == request.choices; }
  bool has_news() const { return !events_.empty() || error_ || is_over(); }

  mutable std::mutex mutex_;  // guards everything below but the atomics
  std::condition_variable news_;
  std::deque<TokenEvent> events_;
  std::atomic<std::size_t> untaken_ = 0;  // events_.size()
  std::atomic<bool> has_failed_ = false, has_cancelled_choices_ = false;
  std::optional<std::size_t> ring_at_;
  std::exception_ptr error_;
  int ended_choices_ = 0;
  std::vector<int> cancelled_choices_;
  Timings timings_;
};

}  // namespace godwit::decode
