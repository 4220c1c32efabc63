// What waits for the engine thread: jobs (a bounded number) and other work, in order of arrival.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>

#include "decode/job_impl.h"

namespace godwit::decode {

// Work on the model that is no generation.
struct Task {
  std::function<void(const models::ModelBundle&)> work;
  std::promise<void> done;
};

using Message = std::variant<std::shared_ptr<Job::Impl>, std::unique_ptr<Task>>;

class Mailbox {
 public:
  // Throws Error{overloaded} when `limit` jobs wait; cancelled ones do not count, they end here.
  // Error{cancelled} after close().
  void add(std::shared_ptr<Job::Impl> job, std::size_t limit);
  void add(std::unique_ptr<Task> task);
  // Blocks; nullopt once closed.
  std::optional<Message> take();
  // Wakes take() and returns what was still waiting.
  std::deque<Message> close();
  bool is_closed() const;

 private:
  void refuse_when_closed() const;

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable filled_;
  std::deque<Message> waiting_;
  bool closed_ = false;
};

}  // namespace godwit::decode
