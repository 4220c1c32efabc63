// Answers that follow a grammar, from their first token on.
#pragma once

#include <memory>

#include "decode/mask_worker.h"
#include "decode/token_filter.h"
#include "text/grammar.h"

namespace godwit::decode {

// The filter accepts a token on the caller's thread and has the mask of the next one computed by the worker;
// mask() waits for what is left of that. A token that the grammar does not take, and a mask beyond the limits
// of work, is Error{invalid_argument}.
class GrammarConstraint final : public TokenConstraint {
 public:
  GrammarConstraint(std::shared_ptr<const text::CompiledGrammar> grammar, std::shared_ptr<MaskWorker> worker)
      : grammar_(std::move(grammar)), worker_(std::move(worker)) {}

  std::unique_ptr<TokenFilter> start(std::span<const int> answer = {}) const override;

 private:
  std::shared_ptr<const text::CompiledGrammar> grammar_;
  std::shared_ptr<MaskWorker> worker_;
};

}  // namespace godwit::decode
