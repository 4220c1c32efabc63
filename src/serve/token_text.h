// Which piece of a text each token made, token by token.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace godwit::serve {

struct TokenPiece {
  std::string bytes;  // what the token added: raw, so half a character is possible; empty for control tokens
  std::size_t begin = 0;   // bytes of certain text before the token's own
  std::size_t end = 0;     // bytes of certain text once it was added
  std::size_t points = 0;  // code points of certain text before the token's own
};

class TokenText {
 public:
  // `tokenizer` must outlive it. `shown`: special tokens whose text counts.
  explicit TokenText(const text::Tokenizer& tokenizer, std::vector<int> shown = {})
      : tokenizer_(tokenizer), shown_(std::move(shown)), detokenizer_(tokenizer) {}
  // Ids that no token has (a padded row of the logits) add nothing.
  TokenPiece add(int id);

 private:
  const text::Tokenizer& tokenizer_;
  std::vector<int> shown_;
  text::Detokenizer detokenizer_;
  std::size_t bytes_ = 0;   // of the text so far
  std::size_t points_ = 0;  // the same in code points
  bool has_begun_ = false;
};

std::size_t count_code_points(std::string_view utf8);

}  // namespace godwit::serve
