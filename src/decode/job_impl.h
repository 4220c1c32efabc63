// The shared half of a Job: the engine thread pushes events in, the holder takes them out.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <vector>

#include "decode/engine.h"

namespace godwit::decode {

struct Job::Impl {
  Impl(GenerationRequest wanted, std::uint64_t seed_in_use) : request(std::move(wanted)), seed(seed_in_use) {}

  const GenerationRequest request;
  const std::uint64_t seed;
  std::atomic<bool> cancelled = false;

  void cancel(int choice);
  bool is_cancelled(int choice) const;
  void push(TokenEvent event, const Timings& timings);
  void fail(std::exception_ptr error);
  // nullopt: finished, or the time is up (`timed_out`). Throws the error that ended the job, once.
  std::optional<TokenEvent> take(std::optional<double> seconds, bool& timed_out);
  Timings timings() const;

 private:
  bool is_over() const { return ended_choices_ == request.choices; }
  bool has_news() const { return !events_.empty() || error_ || is_over(); }

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable news_;
  std::deque<TokenEvent> events_;
  std::exception_ptr error_;
  int ended_choices_ = 0;
  std::vector<int> cancelled_choices_;
  Timings timings_;
};

}  // namespace godwit::decode
