#include "text/gguf_word_pieces.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"

namespace godwit::text {
namespace {

constexpr std::string_view kTag = "gguf tokenizer";
constexpr std::string_view kWordStart = "\xE2\x96\x81";  // U+2581
constexpr const char* kContinuation = "##";
constexpr int kControl = 3;
// Longer words are [UNK]: the limit of every BERT's tokenizer.json, which GGUF files do not repeat.
constexpr int kMaxWord = 100;

void need(const std::optional<int>& id, std::string_view key, std::string_view origin) {
  if (!id) fail(ErrorCode::corrupt_file, kTag, "{}: tokenizer.ggml.{} is absent", origin, key);
}

// The types with the tokens that an id key names among the control tokens: not every converter typed them.
std::vector<int> types_with_named_controls(const GgufVocabulary& v, std::string_view origin) {
  std::vector<int> types = v.token_types;
  types.resize(v.tokens.size(), 1);
  const std::pair<const char*, std::optional<int>> named[] = {{"cls_token_id", v.cls_id},
                                                              {"seperator_token_id", v.separator_id},
                                                              {"unknown_token_id", v.unknown_id},
                                                              {"padding_token_id", v.padding_id},
                                                              {"mask_token_id", v.mask_id}};
  for (const auto& [key, id] : named) {
    if (!id) continue;
    if (*id < 0 || static_cast<std::size_t>(*id) >= types.size())
      fail(ErrorCode::corrupt_file, kTag, "{}: tokenizer.ggml.{} {} is outside of {} tokens", origin, key,
           *id, types.size());
    types[*id] = kControl;
  }
  return types;
}

bool begins_word(std::string_view token) {
  return token.starts_with(kWordStart) && token.size() > kWordStart.size();
}

}  // namespace

GgufVocabulary with_word_pieces(GgufVocabulary vocabulary, std::string_view origin) {
  if (!vocabulary.cls_id) vocabulary.cls_id = vocabulary.bos_id;  // later converters write this one only
  need(vocabulary.cls_id, "cls_token_id", origin);
  need(vocabulary.separator_id, "seperator_token_id", origin);
  need(vocabulary.unknown_id, "unknown_token_id", origin);
  const std::vector<int> before =
      std::exchange(vocabulary.token_types, types_with_named_controls(vocabulary, origin));
  const StringList given = std::exchange(vocabulary.tokens, {});
  for (std::size_t id = 0; id < given.size(); ++id) {
    const std::string_view token = given[id];
    const bool is_literal = !before.empty() && before[id] == kControl;
    if (!is_literal && begins_word(token))
      vocabulary.tokens.push_back(token.substr(kWordStart.size()));
    else if (!is_literal && vocabulary.token_types[id] != kControl)
      vocabulary.tokens.push_back(kContinuation + std::string(token));
    else
      vocabulary.tokens.push_back(token);
  }
  return vocabulary;
}

Json word_piece_normalizer(const GgufVocabulary& vocabulary) {
  const bool lowercase = vocabulary.lowercase.value_or(true);
  return {{"type", "BertNormalizer"},
          {"clean_text", true},
          {"handle_chinese_chars", true},
          {"strip_accents", vocabulary.strip_accents.value_or(lowercase)},
          {"lowercase", lowercase}};
}

Json word_piece_model(const GgufVocabulary& vocabulary, Json map) {
  return {{"type", "WordPiece"},
          {"unk_token", std::string(vocabulary.tokens[vocabulary.unknown_id.value()])},
          {"continuing_subword_prefix", kContinuation},
          {"max_input_chars_per_word", kMaxWord},
          {"vocab", std::move(map)}};
}

Json word_piece_post_processor(const GgufVocabulary& vocabulary) {
  const auto token = [&](int id) { return Json::array({std::string(vocabulary.tokens[id]), id}); };
  return {{"type", "BertProcessing"},
          {"sep", token(vocabulary.separator_id.value())},
          {"cls", token(vocabulary.cls_id.value())}};
}

}  // namespace godwit::text
