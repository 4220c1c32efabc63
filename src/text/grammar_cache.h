// The grammars of one model: the vocabulary is built when the first is asked for, and the newest are kept
// compiled. Any thread; the building and compiling is done on the caller's.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "text/grammar.h"

namespace godwit::text {

class GrammarCache {
 public:
  // `make` is called once, by the first that needs it; one that throws is called again by the next.
  explicit GrammarCache(std::function<GrammarVocabulary()> make) : make_(std::move(make)) {}

  std::shared_ptr<const GrammarVocabulary> vocabulary();
  // Throws what CompiledGrammar throws.
  std::shared_ptr<const CompiledGrammar> compile(const GrammarSpec& spec);

  static constexpr std::size_t kMost = 64;  // compiled grammars kept

 private:
  struct Entry {
    std::shared_ptr<const CompiledGrammar> grammar;
    std::list<GrammarSpec>::iterator used;
  };

  std::shared_ptr<const CompiledGrammar> find(const GrammarSpec& spec);
  void keep(const GrammarSpec& spec, std::shared_ptr<const CompiledGrammar> grammar);

  std::function<GrammarVocabulary()> make_;
  std::mutex making_;
  std::shared_ptr<const GrammarVocabulary> vocabulary_;  // under making_
  std::mutex mutex_;
  std::list<GrammarSpec> order_;  // the newest first
  std::map<GrammarSpec, Entry> grammars_;
};

}  // namespace godwit::text
