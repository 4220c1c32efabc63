// Answers that reason first: free text up to a marker, at most so many tokens of it, and a constraint of what
// comes behind.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "decode/token_filter.h"
#include "text/tokenizer.h"

namespace godwit::decode {

// How a model opens and closes its reasoning, as text and as tokens. Immutable, any thread.
class ReasoningMarkers {
 public:
  // `open` may be empty (the model's prompt opens it), `close` not. `vocabulary`: how many logits there are.
  // The tokenizer must outlive them.
  ReasoningMarkers(const text::Tokenizer& tokenizer, const std::set<int>& ends, int vocabulary,
                   std::string_view open, std::string_view close);

  const std::vector<int>& open_ids() const { return open_ids_; }
  const std::vector<int>& close_ids() const { return close_ids_; }
  std::size_t mask_words() const { return free_.size(); }

  // How many bytes at the end of the text could begin the marker, after one more byte; `close_size()`: it is
  // there.
  std::size_t next(std::size_t begun, char byte) const;
  std::size_t close_size() const { return close_.size(); }
  // The text of a token, names of special ones included.
  std::string text_of(int id) const;

  // Every token but the ends and those that would carry other text than white space behind the marker.
  std::vector<std::uint32_t> free_mask(std::size_t begun) const;

 private:
  void find_carriers(int id);

  const text::Tokenizer& tokenizer_;
  std::string close_;
  std::vector<std::size_t> border_;  // of each prefix of close_: the longest other prefix that ends it
  std::vector<int> open_ids_, close_ids_;
  std::vector<std::uint32_t> free_;
  std::vector<std::vector<int>> carriers_;  // by bytes of the marker that are there before the token
};

enum class ReasoningStart {
  open,      // the prompt ends inside of the reasoning
  may_open,  // the answer may begin with the opening marker; one that does not has no reasoning
};

class ReasoningConstraint final : public TokenConstraint {
 public:
  // `budget`: tokens of reasoning after which the closing marker is written; -1: no limit. `then`: what holds
  // behind the marker; null: nothing.
  ReasoningConstraint(std::shared_ptr<const ReasoningMarkers> markers, ReasoningStart start, int budget,
                      std::shared_ptr<const TokenConstraint> then)
      : markers_(std::move(markers)), start_(start), budget_(budget), then_(std::move(then)) {}

  std::unique_ptr<TokenFilter> start(std::span<const int> answer = {}) const override;

 private:
  std::shared_ptr<const ReasoningMarkers> markers_;
  ReasoningStart start_;
  int budget_;
  std::shared_ptr<const TokenConstraint> then_;
};

}  // namespace godwit::decode
