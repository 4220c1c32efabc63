// The model behind the server as plain values: what parsing, templating and formatting need, without arrays.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "decode/sampling_params.h"
#include "text/chat_encoder.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "text/turn/template_traits.h"
#include "text/turn/turn_format.h"

namespace godwit::decode {
class GrammarSource;
}

namespace godwit::serve {

struct ServedModel {
  std::string id;
  std::vector<std::string> aliases;
  std::int64_t created = 0;  // unix seconds
  std::string fingerprint;   // system_fingerprint: changes when the numbers may
  std::string architecture;  // "llama", as its files name it
  std::string settings;      // how it was opened, for people: "math native, kv dense"
  int context_length = 0;
  int vocabulary = 0;
  bool generates = true;  // false: a text encoder, which only embeds
  const text::Tokenizer* tokenizer = nullptr;             // null: see need_tokenizer
  const text::ChatTemplate* chat_template = nullptr;      // null: see need_chat_template
  std::shared_ptr<const text::ChatEncoder> chat_encoder;  // there when the tokenizer is
  std::shared_ptr<decode::GrammarSource> grammars;        // there when the tokenizer is and an id ends a text
  text::TurnFormat turn_format;                           // of reasoning and calls of tools
  text::TemplateTraits template_traits;                   // what the template can say
  decode::SamplingParams sampling;                        // of fields that a request leaves out

  // Throw Error{unsupported} naming the model.
  const text::Tokenizer& need_tokenizer() const;
  const text::ChatTemplate& need_chat_template() const;

  bool is_named(std::string_view name) const;  // id or alias
};

// Throws RequestError 400 context_length_exceeded for a text that is longer than any the context could hold, before time
// and memory are spent on its tokens.
void check_text_size(const ServedModel& model, std::string_view param, std::size_t bytes);

// Throws RequestError 400 context_length_exceeded, with both numbers, when no token fits behind the prompt of
// the field `param`. With wanted_tokens 0 the prompt alone must fit.
void check_context(const ServedModel& model, std::string_view param, std::size_t prompt_tokens,
                   int wanted_tokens);

}  // namespace godwit::serve
