#include "serve/infill_prompt.h"

#include <array>
#include <optional>
#include <string_view>

namespace godwit::serve {
namespace {

constexpr std::array<std::string_view, 3> kRepository = {"<|repo_name|>", "<repo_name>", "<reponame>"};
constexpr std::array<std::string_view, 3> kFile = {"<|file_sep|>", "<file_sep>", "<|file_separator|>"};
constexpr std::array<std::string_view, 3> kPads = {"<|fim_pad|>", "<fim_pad>", "\xE2\x96\x81<EOT>"};

template <std::size_t N>
std::optional<int> first_of(const std::array<std::string_view, N>& names, const text::Tokenizer& tokenizer) {
  for (const std::string_view name : names)
    if (const auto id = tokenizer.id_of(name)) return id;
  return std::nullopt;
}

std::vector<int> encode(std::string_view text, const text::Tokenizer& tokenizer) {
  return tokenizer.encode(text, {.add_special_tokens = false, .parse_special_tokens = false});
}

void append(std::vector<int>& to, const std::vector<int>& more) { to.insert(to.end(), more.begin(), more.end()); }

// What the tokenizer puts in front of every text.
std::vector<int> beginning(const text::Tokenizer& tokenizer) {
  const std::vector<int> ids = tokenizer.encode("x");
  const bool has_one = !ids.empty() && tokenizer.is_special(ids[0]);
  return has_one ? std::vector<int>{ids[0]} : std::vector<int>();
}

}  // namespace

std::vector<int> infill_prompt(const InfillText& text, const FillInMiddle& gap, const text::Tokenizer& tokenizer) {
  std::vector<int> prompt = beginning(tokenizer);
  const auto file = text.others.empty() ? std::nullopt : first_of(kFile, tokenizer);
  const auto repository = first_of(kRepository, tokenizer);
  if (file && repository) {
    prompt.push_back(*repository);
    append(prompt, encode("repository\n", tokenizer));
  }
  for (const InfillFile& other : text.others) {
    if (file) prompt.push_back(*file);
    append(prompt, encode(other.name + "\n" + other.text + (file ? "" : "\n"), tokenizer));
  }
  if (file) {
    prompt.push_back(*file);
    append(prompt, encode("filename\n", tokenizer));
  }
  append(prompt, gap.prompt(encode(text.prefix, tokenizer), text.suffix));
  append(prompt, encode(text.middle, tokenizer));
  return prompt;
}

std::vector<int> infill_ends(const text::Tokenizer& tokenizer) {
  std::vector<int> ends;
  for (const auto& id : {first_of(kPads, tokenizer), first_of(kRepository, tokenizer), first_of(kFile, tokenizer)})
    if (id) ends.push_back(*id);
  return ends;
}

}  // namespace godwit::serve
