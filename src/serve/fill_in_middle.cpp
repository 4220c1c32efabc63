#include "serve/fill_in_middle.h"

namespace godwit::serve {
namespace {

struct Names {
  const char* prefix;
  const char* suffix;
  const char* middle;  // null: see FillInMiddle::middle_
};

constexpr Names kNames[] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},     // Qwen, CodeGemma, JetBrains
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},           // StarCoder, Granite
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},           // SantaCoder
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},  // GLM
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},     // DeepSeek
    {"▁<PRE>", "▁<SUF>", "▁<MID>"},                             // CodeLlama
    {"[PREFIX]", "[SUFFIX]", nullptr},                          // Codestral
};

}  // namespace

std::optional<FillInMiddle> FillInMiddle::of(const text::Tokenizer& tokenizer) {
  for (const Names& names : kNames) {
    const auto prefix = tokenizer.id_of(names.prefix), suffix = tokenizer.id_of(names.suffix);
    const auto middle = names.middle ? tokenizer.id_of(names.middle) : std::nullopt;
    if (prefix && suffix && (middle || !names.middle))
      return FillInMiddle(tokenizer, *prefix, *suffix, middle);
  }
  return std::nullopt;
}

std::vector<int> FillInMiddle::prompt(const std::vector<int>& prefix, std::string_view suffix) const {
  const std::vector<int> after = tokenizer_->encode(suffix, {.add_special_tokens = false, .parse_special_tokens = false});
  std::vector<int> ids;
  const auto add = [&ids](int mark, const std::vector<int>& text) {
    ids.push_back(mark);
    ids.insert(ids.end(), text.begin(), text.end());
  };
  if (!middle_) add(suffix_, after);
  add(prefix_, prefix);
  if (!middle_) return ids;
  add(suffix_, after);
  ids.push_back(*middle_);
  return ids;
}

}  // namespace godwit::serve
