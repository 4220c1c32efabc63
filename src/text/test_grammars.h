// For tests: grammars over a vocabulary of single bytes.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/grammar.h"

namespace godwit::text {

// Id b is the byte b; 256 ends a text.
inline std::shared_ptr<const GrammarVocabulary> byte_vocabulary() {
  std::vector<GrammarToken> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back({std::string(1, static_cast<char>(byte))});
  tokens.push_back({"<end>", true});
  return std::make_shared<const GrammarVocabulary>(tokens, std::set<int>{256});
}

inline bool has_bit(std::span<const std::uint32_t> words, int id) {
  return words[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1;
}

inline ::testing::AssertionResult holds(std::string_view text, std::string_view part) {
  if (text.find(part) != std::string_view::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << '"' << part << "\" is not in \"" << text << '"';
}

struct ByteGrammars {
  std::shared_ptr<const GrammarVocabulary> vocabulary = byte_vocabulary();

  std::shared_ptr<const CompiledGrammar> compile(GrammarKind kind, std::string text,
                                                 bool strict = true) const {
    return std::make_shared<const CompiledGrammar>(vocabulary, GrammarSpec{kind, std::move(text), strict});
  }
  // Whether the whole text, byte by byte, is let through and may end there.
  static bool accepts(const std::shared_ptr<const CompiledGrammar>& grammar, std::string_view text) {
    GrammarMatcher matcher(grammar);
    for (const char c : text) {
      const int id = static_cast<unsigned char>(c);
      if (matcher.is_stopped() || !has_bit(matcher.mask(), id)) return false;
      matcher.accept(id);
    }
    return matcher.is_complete();
  }
  bool accepts(GrammarKind kind, const std::string& grammar, std::string_view text) const {
    return accepts(compile(kind, grammar), text);
  }
  // What is said against the grammar; empty when nothing is.
  std::string refusal(GrammarKind kind, std::string text, bool strict = true) const {
    try {
      compile(kind, std::move(text), strict);
    } catch (const Error& e) {
      return e.code() == ErrorCode::invalid_argument ? e.what()
                                                     : std::string("not invalid_argument: ") + e.what();
    }
    return "";
  }
};

}  // namespace godwit::text
