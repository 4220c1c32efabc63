// Which of an answer's log-probabilities are those of its content, when reasoning and calls of tools are
// taken out of it.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "serve/logprobs.h"
#include "text/turn/turn_parser.h"

namespace godwit::serve {

class ContentLogprobs {
 public:
  // One step of the answer: the text that came, the entries that are complete with it, what the parser made
  // of it, and whether it is in the reasoning. Returns the entries of the content that it let go, so that a
  // chunk's entries spell the chunk's content.
  std::vector<LogprobEntry> take(std::string_view text, std::vector<LogprobEntry> entries,
                                 std::span<const text::TurnPiece> pieces, bool is_in_reasoning);

 private:
  std::vector<LogprobEntry> leave(std::string_view piece);
  void forget();

  std::string held_;        // of the answer's text: what no piece has taken yet
  std::size_t points_ = 0;  // code points before it
  std::deque<LogprobEntry> entries_;
};

}  // namespace godwit::serve
