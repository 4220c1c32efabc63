#include <algorithm>
#include <chrono>
#include <utility>

#include "decode/job_impl.h"

namespace godwit::decode {

// The choices have one prompt, which the first of them is charged with, and together so many tokens.
void Job::Impl::push(TokenEvent event, const Timings& timings) {
  const std::lock_guard lock(mutex_);
  if (has_failed_) return;
  if (event.finish != FinishReason::none) ++ended_choices_;
  const Timings all = timings_;
  if (event.choice == 0) timings_ = timings;
  timings_.prompt_tokens = std::max(all.prompt_tokens, timings.prompt_tokens);
  timings_.completion_tokens = all.completion_tokens + (event.id >= 0 ? 1 : 0);
  timings_.completion_seconds = std::max(all.completion_seconds, timings.completion_seconds);
  events_.push_back(std::move(event));
  untaken_ = events_.size();
  news_.notify_all();
}

void Job::Impl::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (has_failed_.exchange(true)) return;
  error_ = std::move(error);
  ended_choices_ = request.choices;
  news_.notify_all();
}

bool Job::Impl::ring_below(std::size_t rest) {
  const std::lock_guard lock(mutex_);
  if (events_.size() <= rest) return false;
  ring_at_ = rest;
  return true;
}

std::optional<TokenEvent> Job::Impl::take(std::optional<double> seconds, bool& timed_out) {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return has_news(); };
  if (seconds) {
    timed_out = !news_.wait_for(lock, std::chrono::duration<double>(*seconds), ready);
  } else {
    timed_out = false;
    news_.wait(lock, ready);
  }
  if (!events_.empty()) {
    TokenEvent event = std::move(events_.front());
    events_.pop_front();
    untaken_ = events_.size();
    if (ring_at_ && events_.size() <= *ring_at_) {
      ring_at_.reset();
      bell->ring();
    }
    return event;
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  return std::nullopt;
}

void Job::Impl::cancel(int choice) {
  const std::lock_guard lock(mutex_);
  cancelled_choices_.push_back(choice);
  has_cancelled_choices_ = true;
}

bool Job::Impl::is_cancelled(int choice) const {
  if (cancelled) return true;
  if (!has_cancelled_choices_) return false;
  const std::lock_guard lock(mutex_);
  return std::ranges::find(cancelled_choices_, choice) != cancelled_choices_.end();
}

Timings Job::Impl::timings() const {
  const std::lock_guard lock(mutex_);
  return timings_;
}

Job::Job(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Job::Job(Job&&) noexcept = default;

Job& Job::operator=(Job&& other) noexcept {
  if (this != &other) {
    cancel();
    impl_ = std::move(other.impl_);
  }
  return *this;
}

Job::~Job() { cancel(); }

std::optional<TokenEvent> Job::next() {
  bool timed_out = false;
  return impl_->take(std::nullopt, timed_out);
}

std::optional<TokenEvent> Job::next_for(double seconds, bool& timed_out) {
  return impl_->take(seconds, timed_out);
}

void Job::cancel(int choice) {
  impl_->cancel(choice);
  impl_->bell->ring();
}

void Job::cancel() {
  if (!impl_ || impl_->cancelled.exchange(true)) return;  // a moved-from job has none
  impl_->bell->ring();
}

Timings Job::timings() const { return impl_->timings(); }
std::uint64_t Job::seed() const { return impl_->seed; }

bool Job::has_begun() const { return impl_->has_begun; }

}  // namespace godwit::decode
