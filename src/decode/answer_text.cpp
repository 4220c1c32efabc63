#include "decode/answer_text.h"

#include <algorithm>
#include <utility>

namespace godwit::decode {

AnswerText::AnswerText(const std::optional<text::Tokenizer>& tokenizer, const GenerationRequest& request)
    : tokenizer_(tokenizer),
      shown_(request.shown_special_tokens),
      stops_(request.stop),
      includes_stop_(request.include_stop_text),
      min_tokens_(request.min_tokens),
      begin_after_(request.stops_begin_after),
      wait_if_(request.stops_begin_after.empty() ? "" : request.stops_wait_if) {
  if (tokenizer) detokenizer_.emplace(*tokenizer);
}

text::StopStrings::Piece AnswerText::add(int id) {
  ++made_;
  // Logits may be wider than the vocabulary, and the vocabulary may have holes: such ids have no text.
  if (!detokenizer_ || !tokenizer_->token_of(id)) return {};
  const bool is_shown = std::ranges::find(shown_, id) != shown_.end();
  return take(is_shown ? detokenizer_->add_shown(id) : detokenizer_->add(id));
}

text::StopStrings::Piece AnswerText::finish() {
  if (!detokenizer_) return {};
  text::StopStrings::Piece piece = take(detokenizer_->finish());
  if (!wait_if_.empty()) {  // too short to begin with it
    wait_if_.clear();
    begin_after_.clear();
    piece = take("");
  }
  if (!piece.matched) piece.text += stops_.finish();
  return piece;
}

// White space aside, as models put some in front of their markers.
bool AnswerText::is_undecided() {
  if (wait_if_.empty()) return false;
  const std::string_view start = std::string_view(head_).substr(std::min(head_.find_first_not_of(" \n\r\t"), head_.size()));
  if (start.size() < wait_if_.size() && wait_if_.starts_with(start)) return true;
  if (!start.starts_with(wait_if_)) begin_after_.clear();
  wait_if_.clear();
  return false;
}

text::StopStrings::Piece AnswerText::take(const std::string& more) {
  head_ += more;
  if (bars_stops()) barred_ = head_.size();
  if (is_undecided()) return {};
  const std::string text = std::exchange(head_, "");
  const std::size_t barred = std::exchange(barred_, 0);
  const std::string free = before_stops(text);
  text::StopStrings::Piece piece =
      stops_.add(std::string_view(text).substr(free.size()), barred - std::min(barred, free.size()));
  piece.text = free + piece.text;
  if (piece.matched && includes_stop_) piece.text += *piece.matched;
  return piece;
}

// The beginning of `text` in which no stop string counts: up to the end of begin_after_, or all of it.
std::string AnswerText::before_stops(const std::string& text) {
  if (begin_after_.empty()) return "";
  const std::string seen = tail_ + text;
  const std::size_t at = seen.find(begin_after_);
  if (at == std::string::npos) {
    tail_ = seen.substr(seen.size() - std::min(seen.size(), begin_after_.size() - 1));
    return text;
  }
  const std::size_t end = at + begin_after_.size() - tail_.size();  // in `text`: the tail is shorter than the mark
  begin_after_.clear();
  return text.substr(0, end);
}

}  // namespace godwit::decode
