// Which tokens end an answer. Several files have a say, and none of them alone is enough: one names the end
// of a text, another the end of a turn.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "checkpoint/checkpoint.h"
#include "text/tokenizer.h"

namespace godwit::models {

struct EndTokenSources {
  std::set<int> config;  // config.json and generation_config.json
  std::optional<checkpoint::GgufTokenizer> gguf;
  const text::Tokenizer* tokenizer = nullptr;  // may be absent
  std::string eos_token;                       // the tokenizer's own, as text; empty: none
  std::string chat_template;                   // empty: none
};

// The union of what the sources name. A GGUF file adds eos, eot and eom ids and every token whose text is a
// known end of turn. When nothing else names one, a known end of turn that the chat template writes counts.
// May be empty.
std::set<int> end_ids(const EndTokenSources& sources);

}  // namespace godwit::models
