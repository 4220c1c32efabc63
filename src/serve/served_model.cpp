#include "serve/served_model.h"

#include <algorithm>

#include "serve/request_error.h"

namespace godwit::serve {

const text::Tokenizer& ServedModel::need_tokenizer() const {
  if (!tokenizer)
    fail(ErrorCode::unsupported, "serve", "{}: the model has no tokenizer, so it cannot serve text", id);
  return *tokenizer;
}

const text::ChatTemplate& ServedModel::need_chat_template() const {
  if (!chat_template)
    fail(ErrorCode::unsupported, "serve", "{}: the model has no chat template; give one with --chat-template",
         id);
  return *chat_template;
}

bool ServedModel::is_named(std::string_view name) const {
  return name == id || std::ranges::find(aliases, name) != aliases.end();
}

void check_text_size(const ServedModel& model, std::string_view param, std::size_t bytes) {
  // Runs of spaces make the longest tokens; those of known vocabularies have 128 bytes at most.
  constexpr std::size_t kLongestToken = 256;
  if (bytes / kLongestToken < static_cast<std::size_t>(model.context_length)) return;
  throw RequestError(ErrorCode::context_overflow,
                     fmt::format("This model's maximum context length is {} tokens, but the prompt has {} bytes, "
                                 "which are more than any {} tokens.",
                                 model.context_length, bytes, model.context_length),
                     {.param = std::string(param), .code = "context_length_exceeded"});
}

void check_context(const ServedModel& model, std::string_view param, std::size_t prompt_tokens,
                   int wanted_tokens) {
  const std::size_t needed = prompt_tokens + (wanted_tokens == 0 ? 0 : 1);
  if (needed <= static_cast<std::size_t>(model.context_length)) return;
  throw RequestError(
      ErrorCode::context_overflow,
      fmt::format("This model's maximum context length is {} tokens, but the prompt has {} tokens and "
                  "leaves no room for an answer.",
                  model.context_length, prompt_tokens),
      {.param = std::string(param),
       .code = "context_length_exceeded",
       .extra = Json{{"n_prompt_tokens", prompt_tokens}, {"n_ctx", model.context_length}}});
}

}  // namespace godwit::serve
