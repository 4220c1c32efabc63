#include "serve/unserved_fields.h"

#include <algorithm>
#include <array>

#include "serve/request_error.h"

namespace godwit::serve {
namespace {

constexpr std::array kEverywhere = {
    Unserved{"audio", "audio output"},
    Unserved{"modalities", "output other than text", R"([["text"]])"},
    Unserved{"adapter", "choosing an adapter"},
    Unserved{"lora", "choosing an adapter"},
    Unserved{"cache_salt", "keeping prompts of others out of the prompt cache"},
    Unserved{"use_beam_search", "beam search"},
    Unserved{"length_penalty", "beam search", "[1]"},
    Unserved{"early_stopping", "beam search"},
    Unserved{"logits_processors", "processors of logits"},
    Unserved{"truncate_prompt_tokens", "cutting the prompt", "[-1]"},
    Unserved{"prompt_logprobs", "log-probabilities of the prompt by this name"},
    Unserved{"return_tokens_as_token_ids", "ids in place of tokens"},
    Unserved{"skip_special_tokens", "showing special tokens", "[true]", /*is_on_by_itself=*/true},
    Unserved{"spaces_between_special_tokens", "spaces between special tokens", "[true]",
             /*is_on_by_itself=*/true},
    Unserved{"n_probs", "log-probabilities by this name", "[0]"},
    Unserved{"post_sampling_probs", "probabilities after the samplers"},
    Unserved{"t_max_predict_ms", "a limit in time", "[0]"},
    Unserved{"n_keep", "sliding the context", "[0, -1]"},
    Unserved{"n_indent", "a least indentation", "[0]"},
};

constexpr std::array kChat = {
    Unserved{"best_of", "ranking answers of a chat", "[1]"},
    Unserved{"suffix", "filling in the middle of a chat"},
    Unserved{"echo", "repeating the last message"},
    Unserved{"chat_template", "a template of the request's own"},
    Unserved{"reasoning_format", "another form of the reasoning",
             R"(["auto", "deepseek", "deepseek-legacy"])"},
    Unserved{"parse_tool_calls", "leaving calls in the text", "[true]", /*is_on_by_itself=*/true},
    Unserved{"add_special_tokens", "special tokens around the template's own"},
    Unserved{"thinking_forced_open", "forcing the reasoning open"},
};

constexpr std::array kCompletions = {
    Unserved{"tools", "tool calling in a text completion"},
    Unserved{"tool_choice", "tool calling in a text completion", R"(["none", "auto"])"},
    Unserved{"prompt_embeds", "prompts of embeddings"},
};

constexpr std::array kResponses = {
    Unserved{"background", "running in the background"},
    Unserved{"conversation", "stored conversations; chain answers with previous_response_id"},
    Unserved{"prompt", "stored prompts"},
    Unserved{"n", "several answers of a response", "[1]"},
    Unserved{"context_management", "shortening the context"},
};

bool asks_for_nothing(const Json& value, const Unserved& field) {
  if (value == false) return !field.is_on_by_itself;
  if (value == "" || (value.is_structured() && value.empty())) return true;
  const Json others = Json::parse(field.neutral);
  return std::ranges::find(others, value) != others.end();  // 1 == 1.0 in this library
}

void refuse(const JsonFields& in, std::span<const Unserved> fields) {
  for (const Unserved& field : fields) {
    const Json* value = in.find(field.name);
    if (value && !asks_for_nothing(*value, field)) unserved_field(in.path_of(field.name), field.what);
  }
}

}  // namespace

std::span<const Unserved> unserved_in_chat() { return kChat; }
std::span<const Unserved> unserved_in_completions() { return kCompletions; }
std::span<const Unserved> unserved_in_responses() { return kResponses; }

void refuse_unserved_fields(const JsonFields& in, std::span<const Unserved> of_route) {
  refuse(in, kEverywhere);
  refuse(in, of_route);
}

}  // namespace godwit::serve
