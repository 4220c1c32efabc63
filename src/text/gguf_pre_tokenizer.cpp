#include "text/gguf_pre_tokenizer.h"

#include <algorithm>
#include <array>
#include <span>

namespace godwit::text {
namespace {

constexpr const char* kContractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kSpaces = R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Words with an optional leading sign, `digits` for numbers, runs of signs that may end in line breaks.
std::string words_and(const std::string& digits) {
  return std::string(kContractions) + R"(|[^\r\n\p{L}\p{N}]?\p{L}+|)" + digits +
         R"(| ?[^\s\p{L}\p{N}]+[\r\n]*)" + kSpaces;
}

// Words cut where case changes: upper* lower+ or upper+ lower*, each with an optional contraction behind it.
std::string cased_words_and(const std::string& digits, const std::string& suffix) {
  const std::string upper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])", lower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])";
  const std::string start = R"([^\r\n\p{L}\p{N}]?)";
  return start + upper + "*" + lower + "+" + suffix + "|" + start + upper + "+" + lower + "*" + suffix + "|" +
         digits + R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*)" + kSpaces;
}

std::string qwen35_words() {
  return std::string(kContractions) +
         R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" + kSpaces;
}

PreTokenizer gpt2() { return {.patterns = {kGpt2}}; }
PreTokenizer single_digits() { return {.patterns = {R"(\p{N})", kGpt2}}; }
PreTokenizer llama3() {
  return {.patterns = {words_and(R"(\p{N}{1,3})")}, .ignore_merges = true, .add_bos = true};
}
PreTokenizer dbrx() { return {.patterns = {words_and(R"(\p{N}{1,3})")}}; }
PreTokenizer chatglm() { return {.patterns = {words_and(R"(\p{N}{1,3})")}, .never_bos = true}; }
PreTokenizer glm4() {
  return {.patterns = {words_and(R"(\p{N}{1,3})")}, .ignore_merges = true, .never_bos = true};
}
PreTokenizer one_digit() { return {.patterns = {words_and(R"(\p{N})")}}; }
PreTokenizer qwen2() { return {.patterns = {words_and(R"(\p{N})")}, .nfc = true}; }
PreTokenizer qwen35() { return {.patterns = {qwen35_words()}, .nfc = true}; }
PreTokenizer tekken() {
  return {.patterns = {cased_words_and(R"(\p{N})", "")}, .ignore_merges = true, .add_bos = true};
}
PreTokenizer gpt4o() {
  return {.patterns = {cased_words_and(R"(\p{N}{1,3})", std::string(kContractions) + "?")}};
}
PreTokenizer minicpm5() {
  return {.patterns = {R"(\p{N}{1,3})", words_and(R"(\p{N}+)")}, .ignore_merges = true};
}
PreTokenizer deepseek_v3() {
  return {.patterns = {R"(\p{N}{1,3})", "[一-龥぀-ゟ゠-ヿ]+",
                       std::string(R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)") +
                           R"(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)" + kSpaces}};
}
PreTokenizer deepseek_coder() {
  return {.patterns = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", "[一-龥ࠀ-一가-퟿]+", R"(\p{N})"}};
}
PreTokenizer fallback() {
  return {.patterns = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}};
}

struct Row {
  PreTokenizer (*make)();
  std::vector<std::string_view> names;
};

std::vector<Row> rows() {
  return {
      {gpt2, {"gpt-2", "phi-2", "mpt", "olmo", "exaone4", "trillion", "jais"}},
      {single_digits, {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"}},
      {llama3, {"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "lfm2"}},
      {dbrx, {"dbrx", "smaug-bpe"}},
      {chatglm, {"chatglm-bpe"}},
      {glm4, {"glm4"}},
      {qwen2, {"qwen2"}},
      {one_digit, {"deepseek-r1-qwen", "megrez", "stablelm2", "hunyuan", "solar-open"}},
      {qwen35, {"qwen35"}},
      {tekken, {"tekken"}},
      {gpt4o, {"gpt-4o", "llama4", "kanana2", "minimax-m2"}},
      {minicpm5, {"minicpm5"}},
      {deepseek_v3, {"deepseek-v3", "hunyuan-dense"}},
      {deepseek_coder, {"deepseek-coder"}},
      {fallback, {"default"}},
  };
}

}  // namespace

std::optional<PreTokenizer> find_pre_tokenizer(std::string_view name) {
  for (const Row& row : rows())
    if (std::ranges::find(row.names, name) != row.names.end()) return row.make();
  return std::nullopt;
}

}  // namespace godwit::text
