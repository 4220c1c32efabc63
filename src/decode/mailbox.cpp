#include "decode/mailbox.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace godwit::decode {

void Mailbox::refuse_when_closed() const {
  if (closed_) fail(ErrorCode::cancelled, "engine", "the engine is shutting down");
}

int Mailbox::drop_cancelled() {
  int ended = 0;
  for (Line& line : lines_)
    ended += static_cast<int>(std::erase_if(line.choices, [&](int choice) {
      if (!line.job->is_cancelled(choice)) return false;
      TokenEvent event;
      event.choice = choice;
      event.finish = FinishReason::cancelled;
      line.job->push(std::move(event), {});
      return true;
    }));
  std::erase_if(lines_, [](const Line& line) { return line.choices.empty() || line.job->has_failed(); });
  return ended;
}

void Mailbox::add(std::shared_ptr<Job::Impl> job, std::size_t limit) {
  {
    const std::lock_guard lock(mutex_);
    refuse_when_closed();
    drop_cancelled();
    if (lines_.size() >= limit)
      fail(ErrorCode::overloaded, "engine", "{} requests are waiting already, and {} may wait", lines_.size(), limit);
    job->arrival = ++arrivals_;
    job->queued_at = std::chrono::steady_clock::now();
    std::vector<int> choices(static_cast<std::size_t>(job->request.choices));
    std::iota(choices.begin(), choices.end(), 0);
    lines_.push_back({std::move(job), std::move(choices)});
  }
  bell_->ring();
}

void Mailbox::add(std::unique_ptr<Task> task) {
  {
    const std::lock_guard lock(mutex_);
    refuse_when_closed();
    tasks_.push_back(std::move(task));
  }
  bell_->ring();
}

std::unique_ptr<Task> Mailbox::take_task() {
  const std::lock_guard lock(mutex_);
  if (tasks_.empty()) return nullptr;
  std::unique_ptr<Task> task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

int Mailbox::end_cancelled() {
  const std::lock_guard lock(mutex_);
  return drop_cancelled();
}

std::size_t Mailbox::answers() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const Line& line : lines_) count += line.choices.size();
  return count;
}

std::vector<Ticket> Mailbox::waiting() const {
  std::vector<Ticket> tickets;
  {
    const std::lock_guard lock(mutex_);
    for (const Line& line : lines_)
      for (const int choice : line.choices) tickets.push_back({line.job, choice});
  }
  std::ranges::stable_sort(tickets, [](const Ticket& a, const Ticket& b) { return a.job->comes_before(*b.job); });
  return tickets;
}

bool Mailbox::remove(const Ticket& ticket) {
  const std::lock_guard lock(mutex_);
  const auto line = std::ranges::find(lines_, ticket.job, &Line::job);
  if (line == lines_.end()) return false;
  std::erase(line->choices, ticket.choice);
  if (line->choices.empty()) lines_.erase(line);
  return true;
}

Mailbox::Left Mailbox::close() {
  Left left;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (Line& line : lines_) left.jobs.push_back(std::move(line.job));
    lines_.clear();
    left.tasks = std::exchange(tasks_, {});
  }
  bell_->ring();
  return left;
}

bool Mailbox::is_closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

}  // namespace godwit::decode
