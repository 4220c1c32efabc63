// What waits for the engine thread: jobs that have no row yet (a bounded number of requests), and other work.
#pragma once

#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include "decode/doorbell.h"
#include "decode/job_impl.h"

namespace godwit::decode {

// Work on the model that is no generation.
struct Task {
  std::function<void(const models::ModelBundle&)> work;
  std::promise<void> done;
};

// One answer that waits to be begun.
struct Ticket {
  std::shared_ptr<Job::Impl> job;
  int choice;
};

class Mailbox {
 public:
  const std::shared_ptr<Doorbell>& bell() const { return bell_; }

  // Throws Error{overloaded} when `limit` jobs wait; cancelled ones do not count, they end here. Error{cancelled} after
  // close().
  void add(std::shared_ptr<Job::Impl> job, std::size_t limit);
  void add(std::unique_ptr<Task> task);

  // The engine thread's. Null: there is none.
  std::unique_ptr<Task> take_task();
  // Ends the cancelled answers; gives how many.
  int end_cancelled();
  std::size_t answers() const;  // that wait
  // Those in the order of their turns: by priority, then arrival.
  std::vector<Ticket> waiting() const;
  // Takes an answer out of the line; false when close() has.
  bool remove(const Ticket& ticket);

  // Rings, and returns what was still waiting.
  struct Left {
    std::vector<std::shared_ptr<Job::Impl>> jobs;
    std::deque<std::unique_ptr<Task>> tasks;
  };
  Left close();
  bool is_closed() const;

 private:
  struct Line {
    std::shared_ptr<Job::Impl> job;
    std::vector<int> choices;  // not yet begun
  };

  void refuse_when_closed() const;
  int drop_cancelled();

  const std::shared_ptr<Doorbell> bell_ = std::make_shared<Doorbell>();
  mutable std::mutex mutex_;  // guards everything below
  std::vector<Line> lines_;
  std::deque<std::unique_ptr<Task>> tasks_;
  std::uint64_t arrivals_ = 0;
  bool closed_ = false;
};

}  // namespace godwit::decode
