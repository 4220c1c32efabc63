#include "decode/sampling_text.h"

#include <algorithm>

namespace godwit::decode {

const std::vector<std::string>& default_dry_breakers() {
  static const std::vector<std::string> breakers = {"\n", ":", "\"", "*"};
  return breakers;
}

std::vector<int> tokens_holding(const text::Tokenizer& tokenizer, std::span<const std::string> texts) {
  std::vector<int> ids;
  for (int id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (!tokenizer.token_of(id) || tokenizer.is_special(id)) continue;
    const std::string bytes = tokenizer.bytes_of(id);
    const auto is_in = [&](const std::string& text) {
      return !text.empty() && bytes.find(text) != std::string::npos;
    };
    if (std::ranges::any_of(texts, is_in)) ids.push_back(id);
  }
  return ids;
}

std::vector<std::vector<int>> spellings_of(const text::Tokenizer& tokenizer, const std::string& word) {
  const text::EncodeOptions plain{.add_special_tokens = false, .parse_special_tokens = false};
  std::vector<std::vector<int>> spellings = {tokenizer.encode(word, plain),
                                             tokenizer.encode(" " + word, plain)};
  if (spellings[0] == spellings[1]) spellings.pop_back();
  std::erase_if(spellings, [](const std::vector<int>& ids) { return ids.empty(); });
  return spellings;
}

}  // namespace godwit::decode
