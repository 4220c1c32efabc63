// One answer, advanced piece by piece, so that whoever drives it can look after cancellation between the
// pieces.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "decode/answer_text.h"
#include "decode/generation.h"
#include "decode/prompt_cache.h"
#include "decode/row_runner.h"
#include "decode/sampler.h"

namespace godwit::decode {

// Throws Error{invalid_argument, context_overflow}: a prompt of known tokens that leaves room for `answer`
// more.
void validate_prompt(const models::ModelBundle& bundle, std::span<const int> prompt, int answer);

// Everything about a request that can be refused before work starts; see Engine::submit.
void validate_request(const models::ModelBundle& bundle, const GenerationRequest& request);

class GenerationLoop {
 public:
  // `bundle`, `request` (validated) and `cache` (null: none) must outlive the loop.
  GenerationLoop(const models::ModelBundle& bundle, const GenerationRequest& request, std::uint64_t seed,
                 PromptCache* cache = nullptr);

  bool finished() const { return finished_; }
  // Stores one prompt chunk (no event) or makes one token. The event with finish != none is the last.
  std::optional<TokenEvent> advance();
  // Ends the answer where it is.
  TokenEvent cancel();
  // Puts what the row holds of prompt and answer into the cache. Once finished, however it ended but by a throw.
  void remember();
  const Timings& timings() const { return timings_; }

 private:
  using Clock = std::chrono::steady_clock;

  void look_up();
  int next_token(TokenEvent& event);
  TokenEvent end(TokenEvent event, FinishReason reason);
  bool is_end(int token) const;
  void count_time();

  const models::ModelBundle& bundle_;
  const GenerationRequest& request_;
  PromptCache* cache_;
  RowRunner runner_;
  Sampler sampler_;
  AnswerText text_;
  int limit_;       // tokens that may be made
  int last_token_;  // not yet fed to the model
  std::vector<int> answer_;
  bool looked_up_ = false;
  bool finished_ = false;
  bool prompt_done_ = false;
  Timings timings_;
  Clock::time_point mark_ = Clock::now();  // start of the phase whose seconds are being counted
};

}  // namespace godwit::decode
