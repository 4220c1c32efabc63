#include "models/end_tokens.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace godwit::models {
namespace {

constexpr std::array<std::string_view, 12> kEndOfTurn = {
    "<|eot_id|>", "<|im_end|>",      "<|end|>", "<end_of_turn>", "<|endoftext|>",    "</s>",
    "<eos>",      "<|end_of_text|>", "<turn|>", "<|return|>",    "<|tool_response>", "<|call|>"};

// Texts that markup spells too ("</s>" is an ordinary token of Qwen and Gemma): they count only as control
// tokens. The others count whatever their type, because converters have mistyped them.
constexpr std::array<std::string_view, 2> kOrdinaryText = {"</s>", "<eos>"};

constexpr int kControl = 3;  // tokenizer.ggml.token_type

bool ends_a_turn(const checkpoint::GgufTokenizer& gguf, std::size_t id) {
  const std::string_view token = gguf.tokens[id];
  if (std::ranges::find(kEndOfTurn, token) == kEndOfTurn.end()) return false;
  const bool is_ordinary = std::ranges::find(kOrdinaryText, token) != kOrdinaryText.end();
  return !is_ordinary || id >= gguf.token_types.size() || gguf.token_types[id] == kControl;
}

void add_gguf(const checkpoint::GgufTokenizer& gguf, std::set<int>& ids) {
  for (const std::optional<int>& id : {gguf.eos_id, gguf.eot_id, gguf.eom_id})
    if (id) ids.insert(*id);
  for (std::size_t id = 0; id < gguf.tokens.size(); ++id)
    if (ends_a_turn(gguf, id)) ids.insert(static_cast<int>(id));
}

void add_from_template(const EndTokenSources& sources, std::set<int>& ids) {
  for (const std::string_view text : kEndOfTurn) {
    if (sources.chat_template.find(text) == std::string::npos) continue;
    const std::optional<int> id = sources.tokenizer->id_of(text);
    if (id && sources.tokenizer->is_special(*id)) ids.insert(*id);
  }
}

}  // namespace

std::set<int> end_ids(const EndTokenSources& sources) {
  std::set<int> ids = sources.config;
  if (sources.gguf) add_gguf(*sources.gguf, ids);
  if (!sources.tokenizer) return ids;
  if (!sources.eos_token.empty())
    if (const std::optional<int> id = sources.tokenizer->id_of(sources.eos_token)) ids.insert(*id);
  if (ids.empty()) add_from_template(sources, ids);
  return ids;
}

}  // namespace godwit::models
