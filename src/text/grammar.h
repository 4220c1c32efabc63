// Which tokens may come next under a grammar. Works on bytes, so a token may hold a piece of a character.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/grammar_spec.h"
#include "text/tokenizer.h"

namespace godwit::text {

// A token as the grammars see it.
struct GrammarToken {
  std::string bytes;        // empty: never allowed (holes, padding)
  bool is_special = false;  // no text: `bytes` is a name, by which a Lark grammar may ask for it as <name>
};

// The tokens of one model; immutable and shared by all grammars of that model.
class GrammarVocabulary {
 public:
  // By id. `ends`: the ids that end a text, at least one. Throws Error{invalid_argument}.
  GrammarVocabulary(const std::vector<GrammarToken>& tokens, const std::set<int>& ends);
  // Of a model with `size` logits: ids that the tokenizer does not know are never allowed, special ones and ends
  // never inside of a text. Takes 0.3 to 0.9 s for 150k tokens.
  GrammarVocabulary(const Tokenizer& tokenizer, const std::set<int>& ends, int size);
  ~GrammarVocabulary();
  GrammarVocabulary(GrammarVocabulary&&) noexcept;

  std::size_t size() const;
  std::size_t mask_words() const { return (size() + 31) / 32; }

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// Ready to match; immutable, any thread.
class CompiledGrammar {
 public:
  // Within a second, the mask of the first token included; a grammar that cannot be used, that no token begins, or that is
  // too large or too complex, is Error{invalid_argument} with the place in it.
  CompiledGrammar(std::shared_ptr<const GrammarVocabulary> vocabulary, const GrammarSpec& spec);
  ~CompiledGrammar();

  const GrammarVocabulary& vocabulary() const { return *vocabulary_; }
  // What of a schema is not enforced: "path/keyword: why".
  const std::vector<std::string>& notes() const { return notes_; }

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const GrammarVocabulary> vocabulary_;
  std::unique_ptr<Impl> impl_;
  std::vector<std::string> notes_;
};

// What cannot be enforced of a JSON Schema is Error{invalid_argument} "path/keyword: why".
void need_enforceable(const Json& schema);

// The state of one answer. Not thread-safe. What throws leaves it of no use.
class GrammarMatcher {
 public:
  explicit GrammarMatcher(std::shared_ptr<const CompiledGrammar> grammar);
  ~GrammarMatcher();
  GrammarMatcher(GrammarMatcher&&) noexcept;
  GrammarMatcher clone() const;

  // One bit per token id, 32 a word: set when the token may come next. Ends are set only where the text may end.
  // `words` holds at least vocabulary().mask_words(). Error{invalid_argument} when a mask takes more work than the
  // limits allow.
  void mask(std::span<std::uint32_t> words);
  std::vector<std::uint32_t> mask();
  // Error{invalid_argument} when the token is not allowed here.
  void accept(int id);
  // Takes back the last `tokens` accepted.
  void rollback(std::size_t tokens);
  // Whether the text so far may end here.
  bool is_complete();
  // Whether it must: nothing can follow.
  bool is_stopped();
  // The bytes that must come next, as far as they are certain.
  std::string forced();

 private:
  GrammarMatcher() = default;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::text
