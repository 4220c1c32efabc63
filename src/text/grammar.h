// Which tokens may come next under a grammar. Works on bytes, so a token may hold a piece of a character.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/grammar_spec.h"

namespace godwit::text {

// The tokens of one model as bytes; immutable and shared by all matchers of that model.
class GrammarVocabulary {
 public:
  // `tokens` by id; an empty one (special tokens, holes) is never allowed. `end_id` ends a text.
  GrammarVocabulary(const std::vector<std::string>& tokens, int end_id);
  ~GrammarVocabulary();
  GrammarVocabulary(GrammarVocabulary&&) noexcept;

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// The state of one answer. Not thread-safe.
class GrammarMatcher {
 public:
  // `vocabulary` must outlive the matcher. A grammar that cannot be used is Error{invalid_argument} saying
  // why.
  GrammarMatcher(const GrammarVocabulary& vocabulary, GrammarKind kind, std::string_view grammar);
  ~GrammarMatcher();
  GrammarMatcher(GrammarMatcher&&) noexcept;

  // One bit per token id, 32 a word: set when the token may come next. The end token is set only where the
  // text may end.
  std::vector<std::uint32_t> mask();
  // Error{invalid_argument} when the token is not allowed here; the matcher is of no use afterwards.
  void accept(int id);
  // Whether the text so far may end here.
  bool is_complete();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::text
