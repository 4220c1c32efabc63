#include "decode/answer_text.h"

namespace godwit::decode {

AnswerText::AnswerText(const std::optional<text::Tokenizer>& tokenizer, std::vector<std::string> stops)
    : tokenizer_(tokenizer), stops_(std::move(stops)) {
  if (tokenizer) detokenizer_.emplace(*tokenizer);
}

text::StopStrings::Piece AnswerText::add(int id) {
  // Logits may be wider than the vocabulary, and the vocabulary may have holes: such ids have no text.
  if (!detokenizer_ || !tokenizer_->token_of(id)) return {};
  return stops_.add(detokenizer_->add(id));
}

text::StopStrings::Piece AnswerText::finish() {
  if (!detokenizer_) return {};
  text::StopStrings::Piece piece = stops_.add(detokenizer_->finish());
  if (!piece.matched) piece.text += stops_.finish();
  return piece;
}

}  // namespace godwit::decode
