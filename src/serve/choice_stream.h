// The answers of one request as a sequence of deltas: whole and streamed replies are made of the same ones.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/generation_plan.h"
#include "serve/generator.h"
#include "serve/logprobs.h"
#include "serve/served_model.h"

namespace godwit::serve {

struct Delta {
  int index = 0;  // of the answer: prompts x choices, prompt-major
  int id = -1;    // the token; -1: none, or one that only ended the answer
  std::string text = {};
  std::vector<LogprobEntry> logprobs = {};                   // of the tokens that `text` completes
  decode::FinishReason finish = decode::FinishReason::none;  // set on the last delta of a choice
  std::optional<std::string> stop_match = {};                // the stop string that ended it
  bool is_first = false;                                     // of its choice
};

struct Usage {
  int prompt_tokens = 0;
  int completion_tokens = 0;  // every drawn token, end tokens included
  int cached_tokens = 0;
  int reasoning_tokens = 0;  // of completion_tokens
};

class ChoiceStream {
 public:
  // Submits the first prompt, so that whatever the engine refuses is thrown before anything was answered.
  // The references must outlive the stream.
  ChoiceStream(Generator& generator, const ServedModel& model, GenerationPlan plan);

  // The next delta; nullopt after the last answer. Choices of one prompt come as they are made, prompts one after
  // another. `waiting` runs at least every tenth of a second and may throw, which cancels what is in flight. Throws the
  // Error that ended a generation.
  std::optional<Delta> next(const std::function<void()>& waiting);
  // Ends an answer of the current prompt where it is; its last delta comes with FinishReason::stop.
  void end(int index);

  const GenerationPlan& plan() const { return plan_; }
  Usage usage() const { return usage_; }
  // Of all choices; absent when nothing is generated.
  std::optional<std::uint64_t> seed() const { return plan_.common.sampling.seed; }
  const decode::Timings& timings() const { return timings_; }  // of the newest finished prompt

 private:
  struct Choice {
    bool is_first = true;
    bool is_ended = false;  // by end()
    std::optional<VisibleLogprobs> logprobs = {};
  };

  std::unique_ptr<TokenSource> submit_admitted(const std::function<void()>& waiting);
  std::optional<decode::TokenEvent> wait_for_event(const std::function<void()>& waiting);
  Delta take(const decode::TokenEvent& event);
  void close_prompt();
  std::optional<Delta> next_of_nothing();
  int first_index() const { return static_cast<int>(prompt_) * plan_.choices; }

  Generator& generator_;
  const ServedModel& model_;
  GenerationPlan plan_;
  std::size_t prompt_ = 0;
  int unanswered_ = 0;  // with nothing to generate: the next answer to report
  std::vector<Choice> choices_;
  std::unique_ptr<TokenSource> source_;
  Usage usage_;
  decode::Timings timings_;
};

}  // namespace godwit::serve
