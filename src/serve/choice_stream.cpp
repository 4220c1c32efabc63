#include "serve/choice_stream.h"

#include <chrono>
#include <thread>

#include "base/error.h"

namespace godwit::serve {
namespace {

constexpr double kTickSeconds = 0.1;

}  // namespace

ChoiceStream::ChoiceStream(Generator& generator, const ServedModel& model, GenerationPlan plan)
    : generator_(generator), model_(model), plan_(std::move(plan)) {
  usage_.prompt_tokens = plan_.prompt_tokens();
  if (plan_.common.max_tokens == 0) return;
  source_ = generator_.submit(plan_.request(0));
  plan_.common.sampling.seed =
      source_->seed();  // later choices use it too, so that one seed repeats them all
}

// The request was admitted with its first choice; if the queue is full when a later one comes up, it waits
// its turn.
std::unique_ptr<TokenSource> ChoiceStream::submit_admitted(const std::function<void()>& waiting) {
  for (;;) {
    try {
      return generator_.submit(plan_.request(index_));
    } catch (const Error& e) {
      if (e.code() != ErrorCode::overloaded) throw;
    }
    waiting();
    std::this_thread::sleep_for(std::chrono::duration<double>(kTickSeconds));
  }
}

decode::TokenEvent ChoiceStream::wait_for_event(const std::function<void()>& waiting) {
  for (;;) {
    waiting();
    bool timed_out = false;
    if (auto event = source_->next_for(kTickSeconds, timed_out)) return std::move(*event);
    GODWIT_CHECK(timed_out, "a generation ended without a last event");
  }
}

Delta ChoiceStream::take(const decode::TokenEvent& event) {
  Delta delta{.index = index_, .text = event.text, .finish = event.finish, .is_first = is_first_};
  is_first_ = false;
  // An end token is reported as a finish without a token; it was drawn all the same.
  const bool is_end_token = event.id < 0 && event.finish == decode::FinishReason::stop;
  if (event.id >= 0 || is_end_token) ++usage_.completion_tokens;
  if (plan_.common.logprobs) {
    if (!logprobs_) logprobs_.emplace(model_.need_tokenizer());
    delta.logprobs = logprobs_->add(event);
  }
  if (event.finish == decode::FinishReason::cancelled)
    fail(ErrorCode::cancelled, "serve", "the generation was cancelled");
  if (event.finish != decode::FinishReason::none) close_choice();
  return delta;
}

void ChoiceStream::close_choice() {
  timings_ = source_->timings();
  // Later choices of a prompt find it in memory; only the first says what the request saved.
  if (index_ % plan_.choices == 0) usage_.cached_tokens += timings_.cached_tokens;
  source_.reset();
  logprobs_.reset();
  is_first_ = true;
  ++index_;
}

std::optional<Delta> ChoiceStream::next(const std::function<void()>& waiting) {
  if (index_ == plan_.size()) return std::nullopt;
  if (plan_.common.max_tokens == 0)
    return Delta{.index = index_++, .finish = decode::FinishReason::length, .is_first = true};
  if (!source_) source_ = submit_admitted(waiting);
  return take(wait_for_event(waiting));
}

}  // namespace godwit::serve
