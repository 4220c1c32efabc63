// The parts of a Tokenizer, shared with the detokenizer. Internal to this module.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/string_list.h"
#include "text/decoding_rules.h"
#include "text/ffi.h"
#include "text/tokenizer.h"

namespace godwit::text {

struct FreeTokenizer {
  void operator()(GodwitTokenizer* handle) const { godwit_tokenizer_free(handle); }
};

enum class TokenKind : std::uint8_t { absent, plain, special };

struct Tokenizer::Impl {
  std::unique_ptr<GodwitTokenizer, FreeTokenizer> handle;
  std::string origin;
  DecodingRules rules;
  StringList texts;               // by id, as stored in the vocabulary; empty for ids that no token has
  std::vector<TokenKind> kinds;   // by id

  // Of any id, also one out of range.
  TokenKind kind(int id) const {
    return id >= 0 && static_cast<std::size_t>(id) < kinds.size() ? kinds[id] : TokenKind::absent;
  }
  // The kind of a token. Throws Error{invalid_argument} for an id that no token has.
  TokenKind need(int id) const;
};

}  // namespace godwit::text
