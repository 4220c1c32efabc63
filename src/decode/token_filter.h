// Which tokens an answer may go on with: the seam between the engine and grammars, budgets and forced texts.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace godwit::decode {

// The state of one answer. Used by one thread at a time; what it throws ends its answer alone.
class TokenFilter {
 public:
  virtual ~TokenFilter() = default;
  // One bit per token id, 32 a word, set where the token may come next; ids behind the mask may not. Empty: every
  // token may come. Valid until accept().
  virtual std::span<const std::uint32_t> mask() = 0;
  virtual void accept(int id) = 0;
  // Whether nothing can follow: the answer ends here with FinishReason::stop.
  virtual bool is_over() = 0;
};

// What filters are made of, shared by the answers of a request. Any thread.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;
  // `answer`: the tokens that were made already, when an answer is taken up again.
  virtual std::unique_ptr<TokenFilter> start(std::span<const int> answer = {}) const = 0;
};

}  // namespace godwit::decode
