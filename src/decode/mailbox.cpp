#include "decode/mailbox.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace godwit::decode {
namespace {

// Ends a job that was cancelled before it began.
bool drop_if_cancelled(const Message& message) {
  const auto* job = std::get_if<std::shared_ptr<Job::Impl>>(&message);
  if (job == nullptr || !(*job)->cancelled) return false;
  TokenEvent event;
  event.finish = FinishReason::cancelled;
  (*job)->push(std::move(event), {});
  return true;
}

}  // namespace

void Mailbox::refuse_when_closed() const {
  if (closed_) fail(ErrorCode::cancelled, "engine", "the engine is shutting down");
}

void Mailbox::add(std::shared_ptr<Job::Impl> job, std::size_t limit) {
  const std::lock_guard lock(mutex_);
  refuse_when_closed();
  std::erase_if(waiting_, drop_if_cancelled);
  const auto jobs = static_cast<std::size_t>(std::count_if(
      waiting_.begin(), waiting_.end(), [](const Message& message) { return message.index() == 0; }));
  if (jobs >= limit)
    fail(ErrorCode::overloaded, "engine", "{} requests are waiting already, and {} may wait", jobs, limit);
  waiting_.emplace_back(std::move(job));
  filled_.notify_one();
}

void Mailbox::add(std::unique_ptr<Task> task) {
  const std::lock_guard lock(mutex_);
  refuse_when_closed();
  waiting_.emplace_back(std::move(task));
  filled_.notify_one();
}

std::optional<Message> Mailbox::take() {
  std::unique_lock lock(mutex_);
  filled_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
  if (closed_) return std::nullopt;
  Message message = std::move(waiting_.front());
  waiting_.pop_front();
  return message;
}

std::deque<Message> Mailbox::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  filled_.notify_all();
  return std::exchange(waiting_, {});
}

bool Mailbox::is_closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

}  // namespace godwit::decode
