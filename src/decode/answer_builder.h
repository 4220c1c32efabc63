// One answer without the model: from the logits behind each token to the next one, its text and its end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "decode/answer_text.h"
#include "decode/generation.h"
#include "decode/sampler.h"
#include "decode/token_filter.h"
#include "models/model_bundle.h"

namespace godwit::decode {

class AnswerBuilder {
 public:
  struct Choice {
    int id = -1;
    std::optional<TokenLogprob> logprob = {};
    std::vector<TokenLogprob> top_logprobs = {};
  };

  // `bundle` and `request`, validated, must outlive it. `choice` of its choices. At most `limit` tokens are made. Throws what the request's
  // constraint throws.
  AnswerBuilder(const models::ModelBundle& bundle, const GenerationRequest& request, std::uint64_t seed, int choice,
                int limit);

  // The next token is the model's own argmax, and no logit needs to reach anybody.
  bool is_plain() const;
  // The token behind `logits`, [vocabulary]. Changes nothing but what the filter's mask() changes, so a failed choice may
  // be made again. On any thread, one at a time. Throws what Sampler::choose and the filter throw.
  Choice choose(std::span<const float> logits);
  // Takes it into the answer. The event with finish != none is the last. Throws what the filter throws.
  TokenEvent take(Choice choice);
  // Ends the answer where it is.
  TokenEvent end(FinishReason reason) { return end({}, reason); }

  // The constraint admits no token at all.
  bool is_over_at_once() const { return filter_ && tokens_.empty() && filter_->is_over(); }
  bool is_finished() const { return finished_; }
  int limit() const { return limit_; }
  const std::vector<int>& tokens() const { return tokens_; }  // made so far

 private:
  std::span<const std::uint32_t> mask();
  std::string_view masked_by() const;  // who bars there
  std::span<const std::uint32_t> barring_ends(std::span<const std::uint32_t> mask);
  TokenEvent end(TokenEvent event, FinishReason reason);
  bool ends_at(int token) const;
  bool bars_ends() const { return static_cast<int>(tokens_.size()) < request_.min_tokens; }

  const models::ModelBundle& bundle_;
  const GenerationRequest& request_;
  int choice_;
  Sampler sampler_;
  AnswerText text_;
  std::unique_ptr<TokenFilter> filter_;  // null: none
  int limit_;
  bool finished_ = false;
  std::vector<int> tokens_;
  std::vector<std::uint32_t> mask_;  // the filter's without the ends
};

}  // namespace godwit::decode
