// The grammars of one model and the constraints made of them. Everything that takes time is done on the
// caller's thread, which is not the engine's.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "decode/mask_worker.h"
#include "decode/reasoning_constraint.h"
#include "decode/token_filter.h"
#include "text/grammar_cache.h"

namespace godwit::decode {

class GrammarSource {
 public:
  // `vocabulary`: how many logits the model has. The tokenizer must outlive what is made here.
  GrammarSource(const text::Tokenizer& tokenizer, std::set<int> ends, int vocabulary);

  // The first of a model builds its vocabulary (0.3 to 0.9 s for 150k tokens), one that was compiled lately
  // costs microseconds. Throws Error{invalid_argument} with the place in the grammar.
  std::shared_ptr<const text::CompiledGrammar> compile(const text::GrammarSpec& spec) {
    return cache_.compile(spec);
  }
  std::shared_ptr<const TokenConstraint> constraint(std::shared_ptr<const text::CompiledGrammar> grammar);
  // Free text up to `close`, then `then` (null: anything). As ReasoningConstraint.
  std::shared_ptr<const TokenConstraint> behind_reasoning(const std::string& open, const std::string& close,
                                                          ReasoningStart start, int budget,
                                                          std::shared_ptr<const TokenConstraint> then);

 private:
  const text::Tokenizer& tokenizer_;
  std::set<int> ends_;
  int vocabulary_;
  text::GrammarCache cache_;
  std::mutex mutex_;
  std::shared_ptr<MaskWorker> worker_;  // made with the first constraint
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const ReasoningMarkers>> markers_;
};

}  // namespace godwit::decode
