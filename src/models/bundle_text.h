// The text side of an opened checkpoint: tokenizer, chat template and end tokens, from whichever file has
// them.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "checkpoint/checkpoint.h"
#include "models/model_options.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace godwit::models {

struct BundleText {
  std::optional<text::Tokenizer> tokenizer;
  std::string tokenizer_problem;  // why there is none
  std::optional<text::ChatTemplate> chat_template;
  std::set<int> end_ids;
};

// tokenizer.json of the folder, else what the GGUF file's vocabulary stands for; nullopt where neither is
// there. Throws what Tokenizer::from_file() and from_gguf() throw.
std::optional<text::Tokenizer> read_tokenizer(const checkpoint::Checkpoint& checkpoint);

// Tokenizer: tokenizer.json of the folder, else the GGUF file's vocabulary. Template, first found wins:
// options.chat_template, chat_template.jinja, tokenizer_config.json, chat_template.json, the GGUF file, a
// built-in one for families whose files carry none. End ids: config and generation_config, the tokenizer's
// own, and for GGUF files every token that ends a turn by its id key or its text.
BundleText load_text(const checkpoint::Checkpoint& checkpoint, const ModelOptions& options);

}  // namespace godwit::models
