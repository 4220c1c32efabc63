// Prompts with a gap, for models whose vocabulary has tokens for it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace godwit::serve {

class FillInMiddle {
 public:
  // nullopt: the vocabulary has no such tokens. `tokenizer` must outlive it.
  static std::optional<FillInMiddle> of(const text::Tokenizer& tokenizer);

  // The prompt that asks for what stands between `prefix` and `suffix`, without special tokens in front.
  std::vector<int> prompt(const std::vector<int>& prefix, std::string_view suffix) const;

 private:
  FillInMiddle(const text::Tokenizer& tokenizer, int prefix, int suffix, std::optional<int> middle)
      : tokenizer_(&tokenizer), prefix_(prefix), suffix_(suffix), middle_(middle) {}

  const text::Tokenizer* tokenizer_;
  int prefix_, suffix_;
  std::optional<int> middle_;  // absent: the suffix comes first, and the answer follows the prefix
};

}  // namespace godwit::serve
