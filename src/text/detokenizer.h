// Token ids arrive one at a time; text leaves in pieces that are final: it never shrinks and no piece ends
// inside a character. Works on bytes, so it holds for byte-level and byte-fallback vocabularies alike.
#pragma once

#include <memory>
#include <string>

#include "text/tokenizer.h"

namespace godwit::text {

class Detokenizer {
 public:
  // `tokenizer` must outlive the detokenizer. Special tokens add no text unless `show_special_tokens`.
  explicit Detokenizer(const Tokenizer& tokenizer, bool show_special_tokens = false);
  ~Detokenizer();
  Detokenizer(Detokenizer&&) noexcept;

  // The text that became certain with this token (may be empty). Invalid bytes become U+FFFD: one for each
  // maximal subpart, or, for the <0xNN> tokens of SentencePiece vocabularies, one for each byte as that
  // library does. An id that no token has (a padded logits row) is Error{invalid_argument}.
  std::string add(int id);
  // The same with the text of this token, special as it may be.
  std::string add_shown(int id);
  // What is still held back, as U+FFFD by the same rule.
  std::string finish();

 private:
  std::string add(int id, bool is_shown);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::text
