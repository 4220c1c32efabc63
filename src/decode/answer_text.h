// From sampled ids to text that may be shown: whole characters only, and nothing that could still become a
// stop string.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "text/detokenizer.h"
#include "text/stop_strings.h"
#include "text/tokenizer.h"

namespace godwit::decode {

class AnswerText {
 public:
  // Without a tokenizer every piece is empty. `tokenizer` must outlive the object.
  AnswerText(const std::optional<text::Tokenizer>& tokenizer, std::vector<std::string> stops);

  // What became certain with this token; `matched` ends the answer.
  text::StopStrings::Piece add(int id);
  // Everything still held back, when the answer ends without a match (a late match can still cut it).
  text::StopStrings::Piece finish();

 private:
  const std::optional<text::Tokenizer>& tokenizer_;
  std::optional<text::Detokenizer> detokenizer_;
  text::StopStrings stops_;
};

}  // namespace godwit::decode
