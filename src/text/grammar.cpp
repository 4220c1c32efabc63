#include "text/grammar.h"

#include "base/error.h"
#include "text/rust_call.h"

namespace godwit::text {
namespace {

constexpr std::string_view kTag = "grammar";

std::string_view name_of(GrammarKind kind) {
  switch (kind) {
    case GrammarKind::json_object:
    case GrammarKind::choice:
    case GrammarKind::gbnf:
      break;
    case GrammarKind::json_schema:
      return "json_schema";
    case GrammarKind::regex:
      return "regex";
    case GrammarKind::lark:
      return "lark";
  }
  fail(ErrorCode::unsupported, kTag, "grammars of this kind are not served yet");
}

struct FreeVocabulary {
  void operator()(GodwitGrammarVocabulary* handle) const { godwit_grammar_vocabulary_free(handle); }
};
struct FreeMatcher {
  void operator()(GodwitMatcher* handle) const { godwit_matcher_free(handle); }
};

}  // namespace

struct GrammarVocabulary::Impl {
  std::unique_ptr<GodwitGrammarVocabulary, FreeVocabulary> handle;
  std::size_t size = 0;
};

struct GrammarMatcher::Impl {
  std::unique_ptr<GodwitMatcher, FreeMatcher> handle;
  std::size_t words = 0;
};

GrammarVocabulary::GrammarVocabulary(const std::vector<std::string>& tokens, int end_id)
    : impl_(std::make_unique<Impl>()) {
  std::string bytes;
  std::vector<std::size_t> offsets = {0};
  for (const std::string& token : tokens) {
    bytes += token;
    offsets.push_back(bytes.size());
  }
  GodwitGrammarVocabulary* handle = nullptr;
  rust_call(kTag, "vocabulary", [&](GodwitBytes* error) {
    return godwit_grammar_vocabulary_new(bytes.data(), offsets.data(), tokens.size(),
                                         static_cast<std::uint32_t>(end_id), &handle, error);
  });
  impl_->handle.reset(handle);
  impl_->size = tokens.size();
}

GrammarVocabulary::~GrammarVocabulary() = default;
GrammarVocabulary::GrammarVocabulary(GrammarVocabulary&&) noexcept = default;

GrammarMatcher::GrammarMatcher(const GrammarVocabulary& vocabulary, GrammarKind kind,
                               std::string_view grammar)
    : impl_(std::make_unique<Impl>()) {
  const std::string_view name = name_of(kind);
  GodwitMatcher* handle = nullptr;
  rust_call(kTag, name, [&](GodwitBytes* error) {
    return godwit_matcher_new(vocabulary.impl().handle.get(), name.data(), name.size(), grammar.data(),
                              grammar.size(), &handle, error);
  });
  impl_->handle.reset(handle);
  impl_->words = (vocabulary.impl().size + 31) / 32;
}

GrammarMatcher::~GrammarMatcher() = default;
GrammarMatcher::GrammarMatcher(GrammarMatcher&&) noexcept = default;

std::vector<std::uint32_t> GrammarMatcher::mask() {
  std::vector<std::uint32_t> words(impl_->words);
  rust_call(kTag, "mask", [&](GodwitBytes* error) {
    return godwit_matcher_mask(impl_->handle.get(), words.data(), words.size(), error);
  });
  return words;
}

void GrammarMatcher::accept(int id) {
  rust_call(kTag, "token", [&](GodwitBytes* error) {
    return godwit_matcher_accept(impl_->handle.get(), static_cast<std::uint32_t>(id), error);
  });
}

bool GrammarMatcher::is_complete() {
  int complete = 0;
  rust_call(kTag, "state", [&](GodwitBytes* error) {
    return godwit_matcher_complete(impl_->handle.get(), &complete, error);
  });
  return complete != 0;
}

}  // namespace godwit::text
