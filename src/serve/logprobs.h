// Log-probabilities of the tokens that a reader can see.
//
// The engine reports a token when it is drawn, but its text may appear later (half a character, the possible
// start of a stop string) or never (cut by a stop string). This class lines the two up: an entry leaves
// together with the text that it made, in streams and in whole answers alike, so that the joined bytes of the
// entries are the UTF-8 of the answer.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "decode/generation.h"
#include "serve/token_text.h"
#include "text/tokenizer.h"

namespace godwit::serve {

struct LogprobEntry {
  int id = 0;
  double logprob = 0;
  std::string bytes = {};  // what the token added to the answer: raw, so half a character is possible
  std::vector<decode::TokenLogprob> top = {};
  std::size_t text_offset = 0;  // code points of the answer before it
};

class VisibleLogprobs {
 public:
  // `shown`: GenerationRequest::shown_special_tokens.
  explicit VisibleLogprobs(const text::Tokenizer& tokenizer, std::vector<int> shown = {})
      : text_(tokenizer, std::move(shown)) {}

  // Takes one event of a generation that was asked for log-probabilities, in order; returns the entries whose
  // text is complete with event.text. The last event (finish set) returns all that will ever be visible.
  std::vector<LogprobEntry> add(const decode::TokenEvent& event);

 private:
  struct Pending {
    LogprobEntry entry;
    std::size_t begin;  // as in TokenPiece: places in the text as it would be without stop strings
    std::size_t end;
  };
  void enqueue(const decode::TokenEvent& event);
  bool is_complete(const Pending& token) const { return token.begin < shown_ && token.end <= shown_; }

  TokenText text_;
  std::deque<Pending> pending_;
  std::size_t shown_ = 0;  // bytes of text that the reader has
};

// JSON has no minus infinity, and rounding may leave a hair above zero.
double reported_logprob(double logprob);

// Chat: {token, logprob, bytes, top_logprobs: [...]}. Special tokens have no bytes (null).
Json chat_logprob_json(const LogprobEntry& entry, const text::Tokenizer& tokenizer);

// Completions: {tokens, token_logprobs, top_logprobs, text_offset}, filled entry by entry. A token that is
// not whole UTF-8 is spelled "bytes:\xe4\xbd", since this shape has no field for bytes.
class LegacyLogprobs {
 public:
  explicit LegacyLogprobs(const text::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  // `text_offset` counts code points from the start of prompt + answer. `first` of an echoed prompt: nothing
  // predicted it, so its values are null.
  void add(const LogprobEntry& entry, std::size_t text_offset, bool is_first_of_prompt = false);
  Json json() const;

 private:
  const text::Tokenizer& tokenizer_;
  Json tokens_ = Json::array(), token_logprobs_ = Json::array(), top_logprobs_ = Json::array(),
       text_offset_ = Json::array();
};

}  // namespace godwit::serve
