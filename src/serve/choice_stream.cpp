#include "serve/choice_stream.h"

#include <chrono>
#include <thread>

#include "base/error.h"

namespace godwit::serve {
namespace {

constexpr double kTickSeconds = 0.1;

}  // namespace

ChoiceStream::ChoiceStream(Generator& generator, const ServedModel& model, GenerationPlan plan)
    : generator_(generator), model_(model), plan_(std::move(plan)), choices_(static_cast<std::size_t>(plan_.choices)) {
  usage_.prompt_tokens = plan_.prompt_tokens();
  if (plan_.common.max_tokens == 0) return;
  source_ = generator_.submit(plan_.request(0));
  plan_.common.sampling.seed =
      source_->seed();  // later prompts use it too, so that one seed repeats them all
}

// The request was admitted with its first prompt; if the queue is full when a later one comes up, it waits
// its turn.
std::unique_ptr<TokenSource> ChoiceStream::submit_admitted(const std::function<void()>& waiting) {
  for (;;) {
    try {
      return generator_.submit(plan_.request(prompt_));
    } catch (const Error& e) {
      if (e.code() != ErrorCode::overloaded) throw;
    }
    waiting();
    std::this_thread::sleep_for(std::chrono::duration<double>(kTickSeconds));
  }
}

// nullopt: every choice of the prompt has ended.
std::optional<decode::TokenEvent> ChoiceStream::wait_for_event(const std::function<void()>& waiting) {
  for (;;) {
    waiting();
    bool timed_out = false;
    auto event = source_->next_for(kTickSeconds, timed_out);
    if (event || !timed_out) return event;
  }
}

Delta ChoiceStream::take(const decode::TokenEvent& event) {
  Choice& choice = choices_.at(static_cast<std::size_t>(event.choice));
  Delta delta{.index = first_index() + event.choice,
              .id = event.id,
              .text = event.text,
              .finish = event.finish,
              .stop_match = event.stop_match,
              .is_first = choice.is_first};
  choice.is_first = false;
  // An end token is reported as a finish without a token; it was drawn all the same.
  const bool is_end_token = event.id < 0 && event.finish == decode::FinishReason::stop;
  if (!choice.is_ended && (event.id >= 0 || is_end_token)) ++usage_.completion_tokens;
  if (plan_.common.logprobs) {
    if (!choice.logprobs) choice.logprobs.emplace(model_.need_tokenizer());
    delta.logprobs = choice.logprobs->add(event);
  }
  if (event.finish == decode::FinishReason::cancelled) {
    if (!choice.is_ended) fail(ErrorCode::cancelled, "serve", "the generation was cancelled");
    delta.finish = decode::FinishReason::stop;
  }
  return delta;
}

void ChoiceStream::end(int index) {
  choices_.at(static_cast<std::size_t>(index - first_index())).is_ended = true;
  source_->cancel(index - first_index());
}

void ChoiceStream::close_prompt() {
  timings_ = source_->timings();
  usage_.cached_tokens += timings_.cached_tokens;
  source_.reset();
  choices_ = std::vector<Choice>(choices_.size());
  ++prompt_;
}

std::optional<Delta> ChoiceStream::next_of_nothing() {
  if (unanswered_ == plan_.size()) return std::nullopt;
  return Delta{.index = unanswered_++, .finish = decode::FinishReason::length, .is_first = true};
}

std::optional<Delta> ChoiceStream::next(const std::function<void()>& waiting) {
  if (plan_.common.max_tokens == 0) return next_of_nothing();
  while (prompt_ < plan_.prompts.size()) {
    if (!source_) source_ = submit_admitted(waiting);
    if (const auto event = wait_for_event(waiting)) return take(*event);
    close_prompt();
  }
  return std::nullopt;
}

}  // namespace godwit::serve
