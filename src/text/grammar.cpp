#include "text/grammar.h"

#include <algorithm>

#include "base/json.h"
#include "text/rust_call.h"

namespace godwit::text {
namespace {

constexpr std::string_view kTag = "grammar";

std::string_view name_of(GrammarKind kind) {
  switch (kind) {
    case GrammarKind::json_object:
      return "json_object";
    case GrammarKind::json_schema:
      return "json_schema";
    case GrammarKind::regex:
      return "regex";
    case GrammarKind::choice:
      return "choice";
    case GrammarKind::lark:
      return "lark";
    case GrammarKind::gbnf:
      return "gbnf";
  }
  return "";
}

struct FreeVocabulary {
  void operator()(GodwitGrammarVocabulary* handle) const { godwit_grammar_vocabulary_free(handle); }
};
struct FreeGrammar {
  void operator()(GodwitGrammar* handle) const { godwit_grammar_free(handle); }
};
struct FreeMatcher {
  void operator()(GodwitMatcher* handle) const { godwit_matcher_free(handle); }
};

std::vector<GrammarToken> tokens_of(const Tokenizer& tokenizer, const std::set<int>& ends, int size) {
  std::vector<GrammarToken> tokens(static_cast<std::size_t>(std::max(size, tokenizer.vocabulary_size())));
  for (int id = 0; id < tokenizer.vocabulary_size(); ++id) {
    const std::optional<std::string> stored = tokenizer.token_of(id);
    if (!stored) continue;
    const bool is_special = tokenizer.is_special(id) || ends.contains(id);
    tokens[static_cast<std::size_t>(id)] = {is_special ? *stored : tokenizer.bytes_of(id), is_special};
  }
  return tokens;
}

}  // namespace

struct GrammarVocabulary::Impl {
  std::unique_ptr<GodwitGrammarVocabulary, FreeVocabulary> handle;
  std::size_t size = 0;
};

struct CompiledGrammar::Impl {
  std::unique_ptr<GodwitGrammar, FreeGrammar> handle;
};

struct GrammarMatcher::Impl {
  std::shared_ptr<const CompiledGrammar> grammar;
  std::unique_ptr<GodwitMatcher, FreeMatcher> handle;
};

GrammarVocabulary::GrammarVocabulary(const std::vector<GrammarToken>& tokens, const std::set<int>& ends)
    : impl_(std::make_unique<Impl>()) {
  std::string bytes;
  std::vector<std::size_t> offsets = {0};
  std::vector<std::uint8_t> special;
  for (const GrammarToken& token : tokens) {
    bytes += token.bytes;
    offsets.push_back(bytes.size());
    special.push_back(token.is_special && !token.bytes.empty());
  }
  const std::vector<std::uint32_t> end_ids(ends.begin(), ends.end());
  GodwitGrammarVocabulary* handle = nullptr;
  rust_call(kTag, "vocabulary", [&](GodwitBytes* error) {
    return godwit_grammar_vocabulary_new(bytes.data(), offsets.data(), special.data(), tokens.size(),
                                         end_ids.data(), end_ids.size(), &handle, error);
  });
  impl_->handle.reset(handle);
  impl_->size = tokens.size();
}

GrammarVocabulary::GrammarVocabulary(const Tokenizer& tokenizer, const std::set<int>& ends, int size)
    : GrammarVocabulary(tokens_of(tokenizer, ends, size), ends) {}

GrammarVocabulary::~GrammarVocabulary() = default;
GrammarVocabulary::GrammarVocabulary(GrammarVocabulary&&) noexcept = default;

std::size_t GrammarVocabulary::size() const { return impl_->size; }

CompiledGrammar::CompiledGrammar(std::shared_ptr<const GrammarVocabulary> vocabulary, const GrammarSpec& spec)
    : vocabulary_(std::move(vocabulary)), impl_(std::make_unique<Impl>()) {
  const std::string_view kind = name_of(spec.kind);
  GodwitGrammar* handle = nullptr;
  rust_call(kTag, kind, [&](GodwitBytes* error) {
    return godwit_grammar_new(vocabulary_->impl().handle.get(), kind.data(), kind.size(), spec.text.data(),
                              spec.text.size(), spec.is_strict, &handle, error);
  });
  impl_->handle.reset(handle);
  RustBytes notes;
  rust_call(kTag, kind, [&](GodwitBytes* error) { return godwit_grammar_notes(handle, notes.out(), error); });
  notes_ = parse_json(notes.view(), "notes").get<std::vector<std::string>>();
}

CompiledGrammar::~CompiledGrammar() = default;

void need_enforceable(const Json& schema) {
  const std::string text = dump_json(schema);
  rust_call(kTag, "schema", [&](GodwitBytes* error) { return godwit_schema_check(text.data(), text.size(), error); });
}

GrammarMatcher::GrammarMatcher(std::shared_ptr<const CompiledGrammar> grammar)
    : impl_(std::make_unique<Impl>()) {
  GodwitMatcher* handle = nullptr;
  rust_call(kTag, "start", [&](GodwitBytes* error) {
    return godwit_matcher_new(grammar->impl().handle.get(), &handle, error);
  });
  impl_->handle.reset(handle);
  impl_->grammar = std::move(grammar);
}

GrammarMatcher::~GrammarMatcher() = default;
GrammarMatcher::GrammarMatcher(GrammarMatcher&&) noexcept = default;

GrammarMatcher GrammarMatcher::clone() const {
  GodwitMatcher* handle = nullptr;
  rust_call(kTag, "copy", [&](GodwitBytes* error) {
    return godwit_matcher_clone(impl_->handle.get(), &handle, error);
  });
  GrammarMatcher copy;
  copy.impl_ = std::make_unique<Impl>();
  copy.impl_->handle.reset(handle);
  copy.impl_->grammar = impl_->grammar;
  return copy;
}

void GrammarMatcher::mask(std::span<std::uint32_t> words) {
  rust_call(kTag, "mask", [&](GodwitBytes* error) {
    return godwit_matcher_mask(impl_->handle.get(), words.data(), words.size(), error);
  });
}

std::vector<std::uint32_t> GrammarMatcher::mask() {
  std::vector<std::uint32_t> words(impl_->grammar->vocabulary().mask_words());
  mask(words);
  return words;
}

void GrammarMatcher::accept(int id) {
  rust_call(kTag, "token", [&](GodwitBytes* error) {
    return godwit_matcher_accept(impl_->handle.get(), static_cast<std::uint32_t>(id), error);
  });
}

void GrammarMatcher::rollback(std::size_t tokens) {
  rust_call(kTag, "rollback", [&](GodwitBytes* error) {
    return godwit_matcher_rollback(impl_->handle.get(), tokens, error);
  });
}

bool GrammarMatcher::is_complete() {
  int complete = 0, stopped = 0;
  rust_call(kTag, "state", [&](GodwitBytes* error) {
    return godwit_matcher_state(impl_->handle.get(), &complete, &stopped, error);
  });
  return complete != 0;
}

bool GrammarMatcher::is_stopped() {
  int complete = 0, stopped = 0;
  rust_call(kTag, "state", [&](GodwitBytes* error) {
    return godwit_matcher_state(impl_->handle.get(), &complete, &stopped, error);
  });
  return stopped != 0;
}

std::string GrammarMatcher::forced() {
  RustBytes text;
  rust_call(kTag, "forced", [&](GodwitBytes* error) {
    return godwit_matcher_forced(impl_->handle.get(), text.out(), error);
  });
  return std::string(text.view());
}

}  // namespace godwit::text
