#include "decode/grammar_source.h"

#include "decode/grammar_constraint.h"

namespace godwit::decode {

GrammarSource::GrammarSource(const text::Tokenizer& tokenizer, std::set<int> ends, int vocabulary)
    : tokenizer_(tokenizer),
      ends_(std::move(ends)),
      vocabulary_(vocabulary),
      cache_([this] { return text::GrammarVocabulary(tokenizer_, ends_, vocabulary_); }) {}

std::shared_ptr<const TokenConstraint> GrammarSource::constraint(
    std::shared_ptr<const text::CompiledGrammar> grammar) {
  const std::lock_guard lock(mutex_);
  if (!worker_) worker_ = std::make_shared<MaskWorker>();
  return std::make_shared<const GrammarConstraint>(std::move(grammar), worker_);
}

std::shared_ptr<const TokenConstraint> GrammarSource::behind_reasoning(
    const std::string& open, const std::string& close, ReasoningStart start, int budget,
    std::shared_ptr<const TokenConstraint> then) {
  std::shared_ptr<const ReasoningMarkers> markers;
  {
    const std::lock_guard lock(mutex_);
    auto& kept = markers_[{open, close}];
    if (!kept) kept = std::make_shared<const ReasoningMarkers>(tokenizer_, ends_, vocabulary_, open, close);
    markers = kept;
  }
  return std::make_shared<const ReasoningConstraint>(std::move(markers), start, budget, std::move(then));
}

}  // namespace godwit::decode
