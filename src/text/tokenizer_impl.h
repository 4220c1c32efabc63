// The parts of a Tokenizer, shared with the detokenizer. Internal to this module.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/decoding_rules.h"
#include "text/ffi.h"
#include "text/tokenizer.h"

namespace godwit::text {

struct FreeTokenizer {
  void operator()(GodwitTokenizer* handle) const { godwit_tokenizer_free(handle); }
};

struct TokenEntry {
  std::string text;   // as stored in the vocabulary
  std::string bytes;  // what it adds to a text; empty for special tokens
  bool exists = false;
  bool special = false;
};

struct Tokenizer::Impl {
  std::unique_ptr<GodwitTokenizer, FreeTokenizer> handle;
  std::string origin;
  DecodingRules rules;
  std::vector<TokenEntry> tokens;  // by id
  std::unordered_map<std::string, int> ids;

  // Throws Error{invalid_argument} for an id that no token has.
  const TokenEntry& entry(int id) const;
};

}  // namespace godwit::text
