// Small vocabularies that the tests of this module share.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "text/decoding_rules.h"
#include "text/gguf_tokenizer.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace godwit::text {

// Byte-level BPE in which every listed piece is one token, reached by merging it letter by letter: encoding a
// text therefore shows how it was cut into pieces.
inline GgufVocabulary piece_vocabulary(const std::string& pre, const std::vector<std::string>& pieces) {
  GgufVocabulary out;
  out.model = "gpt2";
  out.pre = pre;
  out.add_bos = false;
  for (int byte = 0; byte < 256; ++byte)
    out.tokens.push_back(alphabet_of_byte(static_cast<unsigned char>(byte)));
  for (const std::string& piece : pieces) {
    std::string so_far;
    for (const char c : piece) {
      const std::string letter = alphabet_of_byte(static_cast<unsigned char>(c));
      if (!so_far.empty()) {
        const std::string merge = so_far + " " + letter, token = so_far + letter;
        if (std::find(out.merges.begin(), out.merges.end(), merge) == out.merges.end()) {
          out.merges.push_back(merge);
          out.tokens.push_back(token);
        }
      }
      so_far += letter;
    }
  }
  if (out.merges.empty()) {
    out.merges.push_back("a b");
    out.tokens.push_back("ab");
  }
  out.token_types.assign(out.tokens.size(), 1);
  return out;
}

// The tokenizer.json that a vocabulary stands for, long lists included: what Tokenizer::from_gguf() never writes down.
inline std::string whole_json(const GgufVocabulary& vocabulary) {
  TokenizerParts parts = tokenizer_parts_of(vocabulary, "whole");
  if (!parts.merges) return dump_json(parts.frame);
  std::map<std::string, std::size_t> ids;  // of equal tokens the first
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) ids.emplace(vocabulary.tokens[id], id);
  Json::object_t vocab;
  for (const auto& [token, id] : ids) vocab.push_back({token, id});
  Json merges = Json::array();
  for (std::size_t i = 0; i < parts.merges->texts.size(); ++i) {
    const std::string text(parts.merges->texts[i]);
    const std::size_t cut = parts.merges->cuts[i];
    merges.push_back({text.substr(0, cut), text.substr(cut + parts.merges->gap)});
  }
  parts.frame["model"]["vocab"] = std::move(vocab);
  parts.frame["model"]["merges"] = std::move(merges);
  return dump_json(parts.frame);
}

inline void add_control_tokens(GgufVocabulary& vocabulary, const std::vector<std::string>& tokens) {
  for (const std::string& token : tokens) {
    vocabulary.tokens.push_back(token);
    vocabulary.token_types.push_back(3);
  }
}

// The tokenizer.json of the SentencePiece-style case: ids <s>1 </s>2, <0xNN> = 3 + NN, pieces from 259.
inline std::string sentencepiece_json() {
  Json vocab = Json::object();
  vocab["<unk>"] = 0;
  vocab["<s>"] = 1;
  vocab["</s>"] = 2;
  for (int byte = 0; byte < 256; ++byte) vocab[fmt::format("<0x{:02X}>", byte)] = 3 + byte;
  int next = 259;
  for (const char* piece : {"▁", "h", "i", "▁h", "▁hi", "hi", "a", "b", "▁a", "▁▁", "c"})
    vocab[piece] = next++;
  const auto special = [](int id, const char* text) {
    return Json{{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", true}};
  };
  const Json space = {{"String", " "}}, marker = {{"String", "▁"}};
  Json whole;
  whole["version"] = "1.0";
  whole["added_tokens"] = {special(0, "<unk>"), special(1, "<s>"), special(2, "</s>")};
  whole["normalizer"] = {{"type", "Sequence"},
                         {"normalizers",
                          {{{"type", "Prepend"}, {"prepend", "▁"}},
                           {{"type", "Replace"}, {"pattern", space}, {"content", "▁"}}}}};
  whole["pre_tokenizer"] = nullptr;
  whole["post_processor"] = nullptr;
  whole["decoder"] = {{"type", "Sequence"},
                      {"decoders",
                       {{{"type", "Replace"}, {"pattern", marker}, {"content", " "}},
                        {{"type", "ByteFallback"}},
                        {{"type", "Fuse"}},
                        {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}};
  whole["model"] = {{"type", "BPE"},
                    {"dropout", nullptr},
                    {"unk_token", "<unk>"},
                    {"fuse_unk", true},
                    {"byte_fallback", true},
                    {"vocab", vocab},
                    {"merges", {"▁ h", "▁h i", "h i", "▁ a", "▁ ▁"}}};
  return whole.dump();
}

}  // namespace godwit::text
