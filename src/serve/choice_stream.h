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
  int index = 0;  // of the choice
  std::string text = {};
  std::vector<LogprobEntry> logprobs = {};                   // of the tokens that `text` completes
  decode::FinishReason finish = decode::FinishReason::none;  // set on the last delta of a choice
  bool is_first = false;                                     // of its choice
};

struct Usage {
  int prompt_tokens = 0;
  int completion_tokens = 0;  // every drawn token, end tokens included
  int cached_tokens = 0;
};

class ChoiceStream {
 public:
  // Submits the first generation, so that whatever the engine refuses is thrown before anything was answered.
  // The references must outlive the stream.
  ChoiceStream(Generator& generator, const ServedModel& model, GenerationPlan plan);

  // The next delta; nullopt after the last choice. `waiting` runs at least every tenth of a second and may
  // throw, which cancels what is in flight. Throws the Error that ended a generation.
  std::optional<Delta> next(const std::function<void()>& waiting);

  const GenerationPlan& plan() const { return plan_; }
  Usage usage() const { return usage_; }
  // Of all choices; absent when nothing is generated.
  std::optional<std::uint64_t> seed() const { return plan_.common.sampling.seed; }
  const decode::Timings& timings() const { return timings_; }  // of the newest finished choice

 private:
  std::unique_ptr<TokenSource> submit_admitted(const std::function<void()>& waiting);
  decode::TokenEvent wait_for_event(const std::function<void()>& waiting);
  Delta take(const decode::TokenEvent& event);
  void close_choice();

  Generator& generator_;
  const ServedModel& model_;
  GenerationPlan plan_;
  int index_ = 0;
  bool is_first_ = true;
  std::unique_ptr<TokenSource> source_;
  std::optional<VisibleLogprobs> logprobs_;
  Usage usage_;
  decode::Timings timings_;
};

}  // namespace godwit::serve
