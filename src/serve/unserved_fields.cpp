#include "serve/unserved_fields.h"

#include <algorithm>
#include <array>

#include "serve/request_error.h"

namespace godwit::serve {
namespace {

struct Meaning {
  std::string_view name;
  std::string_view what;
  // A JSON array of further values that ask for nothing, beside null, false, "", [] and {}.
  std::string_view neutral = "[]";
  bool is_on_by_itself = false;  // false asks for something, true for nothing
};

constexpr std::string_view kForm = "a form of the answer by this name";
constexpr std::string_view kLimit = "a limit by this name";
constexpr std::string_view kPrompt = "a prompt by this name";
constexpr std::string_view kStop = "stop texts by this name";
constexpr std::string_view kTools = "calling tools";
constexpr std::string_view kReasoning = "a wish for reasoning by this name";
constexpr std::string_view kMedia = "an image or a sound";
constexpr std::string_view kBeams = "beam search";

constexpr std::array kMeanings = {
    // What the answer is made of.
    Meaning{"prompt", kPrompt},
    Meaning{"messages", kPrompt},
    Meaning{"input", kPrompt},
    Meaning{"system", kPrompt},
    Meaning{"instructions", kPrompt},
    Meaning{"context", "a conversation as token ids; /api/chat takes messages"},
    Meaning{"prompt_embeds", "prompts of embeddings"},
    Meaning{"images", kMedia},
    Meaning{"image_data", kMedia},
    Meaning{"multimodal_data", kMedia},
    Meaning{"documents", "documents for the template"},
    Meaning{"suffix", "filling in the middle"},
    Meaning{"previous_response_id", "going on from a stored answer"},
    Meaning{"conversation", "stored conversations; chain answers of /v1/responses with previous_response_id"},
    Meaning{"context_management", "shortening the context"},
    Meaning{"truncation", "cutting the chat", R"(["disabled"])"},
    Meaning{"truncate_prompt_tokens", "cutting the prompt", "[-1]"},
    Meaning{"n_keep", "sliding the context", "[0, -1]"},
    Meaning{"add_special_tokens", "special tokens around the prompt"},
    Meaning{"raw", "a prompt without a template"},
    // The template.
    Meaning{"chat_template", "a template of the request's own; the server's --chat-template replaces the model's"},
    Meaning{"template", "a template of the request's own; the server's --chat-template replaces the model's"},
    Meaning{"chat_template_kwargs", "variables of a template"},
    Meaning{"add_generation_prompt", "the prompt of an answer by this name", "[true]", /*is_on_by_itself=*/true},
    Meaning{"continue_final_message", "going on with the last message by this name"},
    // Tools.
    Meaning{"tools", kTools},
    Meaning{"tool_choice", kTools, R"(["none", "auto"])"},
    Meaning{"functions", kTools},
    Meaning{"function_call", kTools, R"(["none", "auto"])"},
    Meaning{"parallel_tool_calls", "one call at a time by this name", "[true]", /*is_on_by_itself=*/true},
    Meaning{"mcp_servers", "tools of other servers"},
    Meaning{"parse_tool_calls", "leaving calls in the text", "[true]", /*is_on_by_itself=*/true},
    // Reasoning.
    Meaning{"reasoning", kReasoning},
    Meaning{"reasoning_effort", kReasoning},
    Meaning{"reasoning_budget", kReasoning, "[-1]"},
    Meaning{"thinking_token_budget", kReasoning, "[-1]"},
    Meaning{"thinking", kReasoning},
    Meaning{"think", kReasoning},
    Meaning{"thinking_forced_open", "forcing the reasoning open"},
    Meaning{"include_reasoning", "leaving the reasoning out by this name", "[true]", /*is_on_by_itself=*/true},
    Meaning{"reasoning_format", "another form of the reasoning", R"(["auto", "deepseek", "deepseek-legacy"])"},
    // The form of the answer.
    Meaning{"response_format", kForm, R"([{"type": "text"}])"},
    Meaning{"structured_outputs", kForm},
    Meaning{"guided_json", kForm},
    Meaning{"guided_regex", kForm},
    Meaning{"guided_choice", kForm},
    Meaning{"guided_grammar", kForm},
    Meaning{"guided_whitespace_pattern", kForm},
    Meaning{"structural_tag", kForm},
    Meaning{"grammar", kForm},
    Meaning{"grammar_lazy", kForm},
    Meaning{"grammar_triggers", kForm},
    Meaning{"json_schema", kForm},
    Meaning{"format", kForm},
    Meaning{"output_format", kForm},
    Meaning{"output_config", kForm},
    Meaning{"text", kForm, R"([{"format": {"type": "text"}}])"},
    Meaning{"modalities", "output other than text", R"([["text"]])"},
    Meaning{"audio", "audio output"},
    Meaning{"n_indent", "a least indentation", "[0]"},
    // How long it gets, and how many there are.
    Meaning{"max_tokens", kLimit},
    Meaning{"max_completion_tokens", kLimit},
    Meaning{"max_output_tokens", kLimit},
    Meaning{"n_predict", kLimit, "[-1]"},
    Meaning{"num_predict", kLimit, "[-1]"},
    Meaning{"t_max_predict_ms", "a limit in time", "[0]"},
    Meaning{"stop", kStop},
    Meaning{"stop_sequences", kStop},
    Meaning{"n", "several answers", "[1]"},
    Meaning{"best_of", "ranking answers", "[1]"},
    Meaning{"background", "running in the background"},
    // How tokens are chosen.
    Meaning{"options", "sampling options in an object of their own"},
    Meaning{"use_beam_search", kBeams},
    Meaning{"length_penalty", kBeams, "[1]"},
    Meaning{"early_stopping", kBeams},
    Meaning{"logits_processors", "processors of logits"},
    Meaning{"tfs_z", "tail-free sampling", "[1]"},
    Meaning{"adapter", "choosing an adapter"},
    Meaning{"lora", "choosing an adapter"},
    Meaning{"cache_salt", "keeping prompts of others out of the prompt cache"},
    // What comes with it.
    Meaning{"echo", "repeating the prompt"},
    Meaning{"logprobs", "log-probabilities by this name"},
    Meaning{"top_logprobs", "log-probabilities by this name", "[0]"},
    Meaning{"prompt_logprobs", "log-probabilities of the prompt by this name"},
    Meaning{"n_probs", "log-probabilities by this name", "[0]"},
    Meaning{"post_sampling_probs", "probabilities after the samplers"},
    Meaning{"return_token_ids", "ids beside the text"},
    Meaning{"return_tokens_as_token_ids", "ids in place of tokens"},
    Meaning{"skip_special_tokens", "showing special tokens", "[true]", /*is_on_by_itself=*/true},
    Meaning{"spaces_between_special_tokens", "spaces between special tokens", "[true]", /*is_on_by_itself=*/true},
};

bool asks_for_nothing(const Json& value, const Meaning& field) {
  if (value == false) return !field.is_on_by_itself;
  if (value == "" || (value.is_structured() && value.empty())) return true;
  const Json others = Json::parse(field.neutral);
  return std::ranges::find(others, value) != others.end();  // 1 == 1.0 in this library
}

}  // namespace

void refuse_unheeded_fields(const JsonFields& in) {
  for (const Meaning& field : kMeanings) {
    if (in.asked().contains(field.name)) continue;
    const Json* value = in.find(field.name);
    if (value && !asks_for_nothing(*value, field)) unserved_field(in.path_of(field.name), field.what);
  }
}

void refuse_misplaced_fields(const JsonFields& outer, const JsonFields& inner, std::string_view inner_name) {
  for (const std::string& name : inner.asked())
    if (!outer.asked().contains(name) && outer.find(name))
      unserved_field(outer.path_of(name), fmt::format("this field outside of '{}'", inner_name));
}

}  // namespace godwit::serve
