#include "text/gguf_tokenizer.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "base/checked.h"
#include "base/error.h"
#include "text/gguf_pre_tokenizer.h"
#include "text/gguf_word_pieces.h"

namespace godwit::text {
namespace {

constexpr std::string_view kTag = "gguf tokenizer";
constexpr const char* kMarker = "\xE2\x96\x81";  // U+2581, SentencePiece's space

enum TokenType { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

class Builder {
 public:
  Builder(const GgufVocabulary& vocabulary, std::string_view origin)
      : vocabulary_(vocabulary), origin_(origin) {
    if (vocabulary.tokens.empty())
      fail(ErrorCode::corrupt_file, kTag, "{}: tokenizer.ggml.tokens is empty", origin);
    check_size("scores", vocabulary.scores.size());
    check_size("token_type", vocabulary.token_types.size());
  }

  TokenizerParts build() const {
    if (vocabulary_.model == "gpt2" && vocabulary_.pre == "gemma4") return spm_merges();
    if (vocabulary_.model == "gpt2") return byte_level();
    if (vocabulary_.model == "gemma4") return spm_merges();
    if (vocabulary_.model == "llama") return sentencepiece();
    if (vocabulary_.model == "t5") return unigram();
    if (vocabulary_.model == "bert") return word_pieces();
    fail(ErrorCode::unsupported, kTag,
         "{}: tokenizer.ggml.model '{}' is not supported (gpt2, llama, gemma4, t5, bert are)", origin_,
         vocabulary_.model);
  }

 private:
  void check_size(std::string_view key, std::size_t size) const {
    if (size != 0 && size != vocabulary_.tokens.size())
      fail(ErrorCode::corrupt_file, kTag, "{}: tokenizer.ggml.{} has {} entries for {} tokens", origin_, key,
           size, vocabulary_.tokens.size());
  }

  int type_of(std::size_t id) const {
    return vocabulary_.token_types.empty() ? normal : vocabulary_.token_types[id];
  }

  std::string token_at(int id, std::string_view key) const {
    if (id < 0 || static_cast<std::size_t>(id) >= vocabulary_.tokens.size())
      fail(ErrorCode::corrupt_file, kTag, "{}: tokenizer.ggml.{} {} is outside of {} tokens", origin_, key,
           id, vocabulary_.tokens.size());
    return std::string(vocabulary_.tokens[id]);
  }

  Json vocabulary_map() const {
    Json::object_t map;  // a vector of pairs inside; filled in bulk, as the checked operator[] walks it
    map.reserve(vocabulary_.tokens.size());
    std::unordered_set<std::string_view> seen;
    for (std::size_t id = 0; id < vocabulary_.tokens.size(); ++id)
      if (seen.insert(vocabulary_.tokens[id]).second) map.push_back({std::string(vocabulary_.tokens[id]), id});
    return Json(std::move(map));
  }

  // Control and user-defined tokens are cut out of the text before anything else looks at it.
  Json added_tokens() const {
    Json list = Json::array();
    std::unordered_set<std::string_view> seen;
    for (std::size_t id = 0; id < vocabulary_.tokens.size(); ++id) {
      const int type = type_of(id);
      const bool special = type == control || type == unknown;
      if ((!special && type != user_defined) || vocabulary_.tokens[id].empty()) continue;
      if (!seen.insert(vocabulary_.tokens[id]).second) continue;
      list.push_back({{"id", id},
                      {"content", std::string(vocabulary_.tokens[id])},
                      {"single_word", false},
                      {"lstrip", false},
                      {"rstrip", false},
                      {"normalized", false},
                      {"special", special}});
    }
    return list;
  }

  // BOS before and EOS behind the text, as the file asks.
  Json post_processor(bool bos_by_default, bool eos_by_default) const {
    const bool bos = vocabulary_.add_bos.value_or(bos_by_default) && vocabulary_.bos_id;
    const bool eos = vocabulary_.add_eos.value_or(eos_by_default) && vocabulary_.eos_id;
    if (!bos && !eos) return nullptr;
    Json single = Json::array(), special = Json::object();
    const auto add = [&](int id, std::string_view key) {
      const std::string text = token_at(id, key);
      single.push_back({{"SpecialToken", {{"id", text}, {"type_id", 0}}}});
      special[text] = {{"id", text}, {"ids", {id}}, {"tokens", {text}}};
    };
    if (bos) add(*vocabulary_.bos_id, "bos_token_id");
    single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
    if (eos) add(*vocabulary_.eos_id, "eos_token_id");
    Json pair = single;
    pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
    return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", special}};
  }

  // "left right": cut at the first space that is not the first character.
  BpeMerges merges_from_file() const {
    if (vocabulary_.merges.empty())
      fail(ErrorCode::corrupt_file, kTag, "{}: tokenizer.ggml.merges is empty", origin_);
    BpeMerges merges{.texts = vocabulary_.merges, .cuts = {}, .gap = 1};
    merges.cuts.reserve(merges.texts.size());
    for (const std::string_view merge : merges.texts) {
      const auto space = merge.find(' ', 1);
      if (space == std::string_view::npos || space + 1 == merge.size())
        fail(ErrorCode::corrupt_file, kTag, "{}: merge '{}' is no pair", origin_, merge);
      merges.cuts.push_back(checked_cast<std::uint32_t>(space, origin_));
    }
    return merges;
  }

  static Json isolated(const std::string& pattern) {
    return {
        {"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
  }

  static Json bpe_model() {
    return {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false}};
  }

  Json assemble(Json normalizer, Json pre_tokenizer, Json post, Json decoder, Json model) const {
    Json whole = Json::object();
    whole["version"] = "1.0";
    whole["truncation"] = nullptr;
    whole["padding"] = nullptr;
    whole["added_tokens"] = added_tokens();
    whole["normalizer"] = std::move(normalizer);
    whole["pre_tokenizer"] = std::move(pre_tokenizer);
    whole["post_processor"] = std::move(post);
    whole["decoder"] = std::move(decoder);
    whole["model"] = std::move(model);
    return whole;
  }

  TokenizerParts byte_level() const {
    const auto splitter = find_pre_tokenizer(vocabulary_.pre);
    if (!splitter)
      fail(ErrorCode::unsupported, kTag, "{}: tokenizer.ggml.pre '{}' is not supported", origin_,
           vocabulary_.pre);
    const Json letters = {
        {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
    Json steps = Json::array();
    for (const std::string& pattern : splitter->patterns) steps.push_back(isolated(pattern));
    steps.push_back(letters);
    Json model = bpe_model();
    model["ignore_merges"] = splitter->ignore_merges;
    Json normalizer = nullptr;
    if (splitter->nfc) normalizer = {{"type", "NFC"}};
    Json post = splitter->never_bos ? Json(nullptr) : post_processor(splitter->add_bos, false);
    return {assemble(std::move(normalizer), {{"type", "Sequence"}, {"pretokenizers", steps}}, std::move(post),
                     letters, std::move(model)),
            merges_from_file()};
  }

  bool has_byte_tokens() const {
    return std::ranges::find(vocabulary_.token_types, byte) != vocabulary_.token_types.end();
  }

  std::string unknown_token() const {
    if (vocabulary_.unknown_id) return token_at(*vocabulary_.unknown_id, "unknown_token_id");
    for (std::size_t id = 0; id < vocabulary_.tokens.size(); ++id)
      if (type_of(id) == unknown) return std::string(vocabulary_.tokens[id]);
    return {};
  }

  static Json spaces_to_marker() {
    return {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kMarker}};
  }

  static Json marker_decoder(bool strip) {
    Json steps = {{{"type", "Replace"}, {"pattern", {{"String", kMarker}}}, {"content", " "}},
                  {{"type", "ByteFallback"}},
                  {{"type", "Fuse"}}};
    if (strip) steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    return {{"type", "Sequence"}, {"decoders", steps}};
  }

  Json byte_fallback_model() const {
    Json model = bpe_model();
    model["byte_fallback"] = has_byte_tokens();
    model["fuse_unk"] = true;
    if (const std::string unk = unknown_token(); !unk.empty()) model["unk_token"] = unk;
    return model;
  }

  // SentencePiece text with explicit merges (Gemma 4): no words, only runs of line breaks stand alone.
  TokenizerParts spm_merges() const {
    return {assemble(spaces_to_marker(), isolated("[^\\n]+|[\\n]+"), post_processor(true, false), marker_decoder(false),
                     byte_fallback_model()),
            merges_from_file()};
  }

  TokenizerParts sentencepiece() const {
    if (vocabulary_.scores.empty())
      fail(ErrorCode::corrupt_file, kTag, "{}: tokenizer.ggml.scores is absent", origin_);
    const bool prefix = vocabulary_.add_space_prefix.value_or(true);
    Json steps = Json::array();
    if (prefix) steps.push_back({{"type", "Prepend"}, {"prepend", kMarker}});
    steps.push_back(spaces_to_marker());
    return {assemble({{"type", "Sequence"}, {"normalizers", steps}}, nullptr, post_processor(true, false),
                     marker_decoder(prefix), byte_fallback_model()),
            merges_from_scores()};
  }

  // SentencePiece merges the adjacent pair whose union has the best score. As ranked merges: every way to cut
  // a token in two tokens, best score first; of one token's cuts, the ones of earlier tokens first.
  BpeMerges merges_from_scores() const {
    struct Merge {
      float score;
      int left_id, right_id, id;
    };
    const auto mergeable = [&](std::size_t id) { return type_of(id) == normal; };
    std::unordered_map<std::string_view, int> ids;
    ids.reserve(vocabulary_.tokens.size());
    for (std::size_t id = 0; id < vocabulary_.tokens.size(); ++id)
      if (mergeable(id)) ids.emplace(vocabulary_.tokens[id], static_cast<int>(id));
    std::vector<Merge> merges;
    for (const auto& [token, id] : ids) {
      for (std::size_t cut = 1; cut < token.size(); ++cut) {
        if ((token[cut] & 0xC0) == 0x80) continue;  // inside a character
        const auto left = ids.find(token.substr(0, cut));
        if (left == ids.end()) continue;
        const auto right = ids.find(token.substr(cut));
        if (right != ids.end()) merges.push_back({vocabulary_.scores[id], left->second, right->second, id});
      }
    }
    std::ranges::sort(merges, [](const Merge& a, const Merge& b) {
      if (a.score != b.score) return a.score > b.score;
      return std::pair(a.left_id, a.right_id) < std::pair(b.left_id, b.right_id);
    });
    BpeMerges list;
    list.texts.reserve(merges.size());
    for (const Merge& merge : merges) {
      list.texts.push_back(vocabulary_.tokens[merge.id]);
      list.cuts.push_back(static_cast<std::uint32_t>(vocabulary_.tokens[merge.left_id].size()));
    }
    return list;
  }

  TokenizerParts unigram() const;

  TokenizerParts word_pieces() const {
    return {assemble(word_piece_normalizer(vocabulary_), {{"type", "BertPreTokenizer"}},
                    word_piece_post_processor(vocabulary_),
                    {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}},
                    word_piece_model(vocabulary_, vocabulary_map())),
            std::nullopt};
  }

  const GgufVocabulary& vocabulary_;
  std::string_view origin_;
};

std::string base64(const std::vector<unsigned char>& bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t left = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = bytes[at] << 16;
    if (left > 1) group |= bytes[at + 1] << 8;
    if (left > 2) group |= bytes[at + 2];
    for (std::size_t digit = 0; digit < 4; ++digit)
      out += digit <= left ? kDigits[group >> (18 - 6 * digit) & 63] : '=';
  }
  return out;
}

TokenizerParts Builder::unigram() const {
  if (vocabulary_.scores.empty())
    fail(ErrorCode::corrupt_file, kTag, "{}: tokenizer.ggml.scores is absent", origin_);
  Json pieces = Json::array();
  Json unk_id = nullptr;
  for (std::size_t id = 0; id < vocabulary_.tokens.size(); ++id) {
    if (type_of(id) == unknown && unk_id.is_null()) unk_id = id;
    pieces.push_back({std::string(vocabulary_.tokens[id]), static_cast<double>(vocabulary_.scores[id])});
  }
  if (vocabulary_.unknown_id) unk_id = *vocabulary_.unknown_id;
  Json steps = Json::array();
  if (!vocabulary_.precompiled_charsmap.empty())
    steps.push_back(
        {{"type", "Precompiled"}, {"precompiled_charsmap", base64(vocabulary_.precompiled_charsmap)}});
  if (vocabulary_.remove_extra_whitespaces.value_or(true)) {
    steps.push_back({{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}});
    steps.push_back({{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}});
  }
  const bool prefix = vocabulary_.add_space_prefix.value_or(true);
  const Json marker = {{"type", "Metaspace"},
                       {"replacement", kMarker},
                       {"prepend_scheme", prefix ? "always" : "never"},
                       {"split", true}};
  const Json model = {
      {"type", "Unigram"}, {"unk_id", unk_id}, {"vocab", pieces}, {"byte_fallback", has_byte_tokens()}};
  return {assemble(steps.empty() ? Json(nullptr) : Json{{"type", "Sequence"}, {"normalizers", steps}}, marker,
                   post_processor(false, true), marker, model),
          std::nullopt};
}

}  // namespace

TokenizerParts tokenizer_parts_of(const GgufVocabulary& vocabulary, std::string_view origin) {
  Builder builder(vocabulary, origin);
  if (vocabulary.model != "bert") return builder.build();
  const GgufVocabulary pieces = with_word_pieces(vocabulary, origin);
  return Builder(pieces, origin).build();
}

}  // namespace godwit::text
