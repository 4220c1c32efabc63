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

inline constexpr std::size_t kMostInFlight = 32;  // prompts of one request that the engine has at a time

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

  // The next delta; nullopt after the last answer. Answers come as they are made: prompts run beside each
  // other, as many as the engine's queue has room for. `waiting` runs at least every tenth of a second and
  // may throw, which cancels what is in flight. Throws the Error that ended a generation.
  std::optional<Delta> next(const std::function<void()>& waiting);
  // Ends an answer that is in flight where it is; its last delta comes with FinishReason::stop.
  void end(int index);

  const GenerationPlan& plan() const { return plan_; }
  Usage usage() const;  // up to now
  // Of all choices; absent when nothing is generated.
  std::optional<std::uint64_t> seed() const { return plan_.common.sampling.seed; }
  const decode::Timings& timings() const { return timings_; }  // of the newest finished prompt

 private:
  struct Choice {
    bool is_first = true;
    bool is_ended = false;  // by end()
    std::optional<VisibleLogprobs> logprobs = {};
  };
  // One prompt in the engine.
  struct Flight {
    std::unique_ptr<TokenSource> source;
    int first_index;
    std::vector<Choice> choices;
  };
  // What a look at a flight found.
  struct Look {
    std::optional<Delta> delta = {};
    bool has_landed = false;  // every choice has ended
  };

  void submit();
  void submit_more();
  std::optional<Delta> look_around();
  Look look(Flight& flight, double seconds);
  Delta take(const decode::TokenEvent& event, Flight& flight);
  void land(std::size_t flight);
  std::optional<Delta> next_of_nothing();

  Generator& generator_;
  const ServedModel& model_;
  GenerationPlan plan_;
  std::size_t submitted_ = 0;  // prompts
  int unanswered_ = 0;         // with nothing to generate: the next answer to report
  std::vector<Flight> flights_;
  std::size_t turn_ = 0;  // the flight to be looked at first
  Usage usage_;
  decode::Timings timings_;
};

}  // namespace godwit::serve
