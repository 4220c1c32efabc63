#include "serve/choice_stream.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/error.h"

namespace godwit::serve {
namespace {

constexpr double kTickSeconds = 0.1;
constexpr double kShortTickSeconds = 0.005;  // among several flights: each waits for the others' ticks

}  // namespace

ChoiceStream::ChoiceStream(Generator& generator, const ServedModel& model, GenerationPlan plan)
    : generator_(generator), model_(model), plan_(std::move(plan)) {
  usage_.prompt_tokens = plan_.prompt_tokens();
  if (plan_.common.max_tokens == 0) return;
  submit();
  // Later prompts use it too, so that one seed repeats them all.
  plan_.common.sampling.seed = flights_[0].source->seed();
}

void ChoiceStream::submit() {
  Flight flight{.source = generator_.submit(plan_.request(submitted_)),
                .first_index = static_cast<int>(submitted_) * plan_.choices,
                .choices = std::vector<Choice>(static_cast<std::size_t>(plan_.choices))};
  flights_.push_back(std::move(flight));
  ++submitted_;
}

// The request was admitted with its first prompt; what finds the queue full waits its turn.
void ChoiceStream::submit_more() {
  while (submitted_ < plan_.prompts.size() && flights_.size() < kMostInFlight) {
    try {
      submit();
    } catch (const Error& e) {
      if (e.code() != ErrorCode::overloaded) throw;
      return;
    }
  }
}

Delta ChoiceStream::take(const decode::TokenEvent& event, Flight& flight) {
  Choice& choice = flight.choices.at(static_cast<std::size_t>(event.choice));
  Delta delta{.index = flight.first_index + event.choice,
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
    if (!choice.logprobs) choice.logprobs.emplace(model_.need_tokenizer(), plan_.common.shown_special_tokens);
    delta.logprobs = choice.logprobs->add(event);
  }
  if (event.finish == decode::FinishReason::cancelled) {
    if (!choice.is_ended) fail(ErrorCode::cancelled, "serve", "the generation was cancelled");
    delta.finish = decode::FinishReason::stop;
  }
  return delta;
}

Usage ChoiceStream::usage() const {
  Usage usage = usage_;
  for (const Flight& flight : flights_) usage.cached_tokens += flight.source->timings().cached_tokens;
  return usage;
}

void ChoiceStream::end(int index) {
  for (Flight& flight : flights_) {
    const int choice = index - flight.first_index;
    if (choice < 0 || choice >= plan_.choices) continue;
    flight.choices.at(static_cast<std::size_t>(choice)).is_ended = true;
    flight.source->cancel(choice);
  }
}

void ChoiceStream::land(std::size_t flight) {
  timings_ = flights_[flight].source->timings();
  usage_.cached_tokens += timings_.cached_tokens;
  flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(flight));
}

ChoiceStream::Look ChoiceStream::look(Flight& flight, double seconds) {
  bool timed_out = false;
  const auto event = flight.source->next_for(seconds, timed_out);
  if (event) return {.delta = take(*event, flight)};
  return {.has_landed = !timed_out};
}

// Every flight once, the one whose turn it is first; it is the one that is waited for.
std::optional<Delta> ChoiceStream::look_around() {
  const double seconds = flights_.size() > 1 ? kShortTickSeconds : kTickSeconds;
  for (std::size_t looks = flights_.size(); looks > 0; --looks) {
    if (turn_ >= flights_.size()) turn_ = 0;
    Look found = look(flights_[turn_], looks == 1 ? seconds : 0);
    if (found.has_landed) {
      land(turn_);
      continue;
    }
    ++turn_;
    if (found.delta) return std::move(found.delta);
  }
  return std::nullopt;
}

std::optional<Delta> ChoiceStream::next_of_nothing() {
  if (unanswered_ == plan_.size()) return std::nullopt;
  return Delta{.index = unanswered_++, .finish = decode::FinishReason::length, .is_first = true};
}

std::optional<Delta> ChoiceStream::next(const std::function<void()>& waiting) {
  if (plan_.common.max_tokens == 0) return next_of_nothing();
  for (;;) {
    submit_more();
    waiting();
    if (flights_.empty() && submitted_ == plan_.prompts.size()) return std::nullopt;
    if (flights_.empty())
      std::this_thread::sleep_for(std::chrono::duration<double>(kTickSeconds));
    else if (auto delta = look_around())
      return delta;
  }
}

}  // namespace godwit::serve
