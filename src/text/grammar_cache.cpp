#include "text/grammar_cache.h"

namespace godwit::text {

std::shared_ptr<const GrammarVocabulary> GrammarCache::vocabulary() {
  const std::lock_guard lock(making_);
  if (!vocabulary_) vocabulary_ = std::make_shared<const GrammarVocabulary>(make_());
  return vocabulary_;
}

std::shared_ptr<const CompiledGrammar> GrammarCache::compile(const GrammarSpec& spec) {
  if (auto known = find(spec)) return known;
  auto grammar = std::make_shared<const CompiledGrammar>(vocabulary(), spec);
  keep(spec, grammar);
  return grammar;
}

std::shared_ptr<const CompiledGrammar> GrammarCache::find(const GrammarSpec& spec) {
  const std::lock_guard lock(mutex_);
  const auto at = grammars_.find(spec);
  if (at == grammars_.end()) return nullptr;
  order_.splice(order_.begin(), order_, at->second.used);
  return at->second.grammar;
}

void GrammarCache::keep(const GrammarSpec& spec, std::shared_ptr<const CompiledGrammar> grammar) {
  const std::lock_guard lock(mutex_);
  if (grammars_.contains(spec)) return;  // another thread was faster
  order_.push_front(spec);
  grammars_[spec] = {std::move(grammar), order_.begin()};
  if (order_.size() <= kMost) return;
  grammars_.erase(order_.back());
  order_.pop_back();
}

}  // namespace godwit::text
