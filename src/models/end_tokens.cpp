#include "models/end_tokens.h"

#include <array>
#include <string_view>

namespace godwit::models {
namespace {

constexpr std::array<std::string_view, 12> kEndOfTurn = {
    "<|eot_id|>", "<|im_end|>",      "<|end|>", "<end_of_turn>", "<|endoftext|>",    "</s>",
    "<eos>",      "<|end_of_text|>", "<turn|>", "<|return|>",    "<|tool_response>", "<|call|>"};

void add_gguf(const checkpoint::GgufTokenizer& gguf, std::set<int>& ids) {
  for (const std::optional<int>& id : {gguf.eos_id, gguf.eot_id, gguf.eom_id})
    if (id) ids.insert(*id);
  for (std::size_t id = 0; id < gguf.tokens.size(); ++id)
    for (const std::string_view text : kEndOfTurn)
      if (gguf.tokens[id] == text) ids.insert(static_cast<int>(id));
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
