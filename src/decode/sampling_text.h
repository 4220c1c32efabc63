// Sampling parameters that are spoken of as texts, as tokens of one model.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace godwit::decode {

// What DRY's runs do not cross where nothing else is asked for: line ends, colons, quotes and asterisks.
const std::vector<std::string>& default_dry_breakers();

// The tokens whose bytes hold one of the texts, ascending. Looks at the whole vocabulary: milliseconds.
std::vector<int> tokens_holding(const text::Tokenizer& tokenizer, std::span<const std::string> texts);

// How a word may be spelled: as it stands, and with a space in front.
std::vector<std::vector<int>> spellings_of(const text::Tokenizer& tokenizer, const std::string& word);

}  // namespace godwit::decode
