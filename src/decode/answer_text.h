// From sampled ids to text that may be shown: whole characters only, and nothing that could still become a
// stop string.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "decode/generation.h"
#include "text/detokenizer.h"
#include "text/stop_strings.h"
#include "text/tokenizer.h"

namespace godwit::decode {

class AnswerText {
 public:
  // Looks at stop, min_tokens, include_stop_text, stops_begin_after, stops_wait_if and shown_special_tokens of the request. Without a tokenizer
  // every piece is empty. `tokenizer` must outlive the object.
  AnswerText(const std::optional<text::Tokenizer>& tokenizer, const GenerationRequest& request);

  // What became certain with this token; `matched` ends the answer.
  text::StopStrings::Piece add(int id);
  // Everything still held back, when the answer ends without a match (a late match can still cut it).
  text::StopStrings::Piece finish();

 private:
  text::StopStrings::Piece take(const std::string& more);
  std::string before_stops(const std::string& text);
  bool bars_stops() const { return made_ <= min_tokens_; }
  bool is_undecided();

  const std::optional<text::Tokenizer>& tokenizer_;
  std::optional<text::Detokenizer> detokenizer_;
  std::vector<int> shown_;
  text::StopStrings stops_;
  bool includes_stop_;
  int min_tokens_;  // the text of the first so many completes no stop string
  int made_ = 0;    // tokens so far
  std::string begin_after_;  // empty: stop strings count
  std::string wait_if_;      // not empty: whether the answer begins with it is not known yet
  std::string head_;         // of the text so far, until it is
  std::size_t barred_ = 0;   // bytes at its start that complete no stop string
  std::string tail_;         // of the text so far, what may begin begin_after_
};

}  // namespace godwit::decode
