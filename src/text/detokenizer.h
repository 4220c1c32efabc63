// Token ids arrive one at a time; text leaves in pieces that are final: it never shrinks and no piece ends inside a
// character. Works on bytes, so it holds for byte-level and byte-fallback vocabularies alike.
#pragma once

#include <memory>
#include <string>

#include "text/tokenizer.h"

namespace godwit::text {

class Detokenizer {
 public:
  // `tokenizer` must outlive the detokenizer.
  explicit Detokenizer(const Tokenizer& tokenizer);
  ~Detokenizer();
  Detokenizer(Detokenizer&&) noexcept;

  // The text that became certain with this token (may be empty). Invalid bytes become U+FFFD by maximal subpart.
  std::string add(int id);
  // What is still held back; a pending partial character becomes one U+FFFD.
  std::string finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::text
