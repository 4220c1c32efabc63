#include "serve/completion_request.h"

#include <algorithm>

#include "serve/answer_fields.h"
#include "serve/fill_in_middle.h"
#include "serve/json_fields.h"
#include "serve/request_error.h"
#include "serve/sampling_fields.h"
#include "serve/structured_output.h"
#include "serve/unserved_fields.h"

namespace godwit::serve {
namespace {

constexpr int kDefaultMaxTokens = 16;

// A text that spells the BOS token itself gets no second one from the tokenizer.
void drop_doubled_bos(std::vector<int>& ids, const text::Tokenizer& tokenizer) {
  if (ids.size() > 1 && ids[0] == ids[1] && tokenizer.is_special(ids[0])) ids.erase(ids.begin());
}

class PromptReader {
 public:
  // `suffix`: what stands behind the gap that the answer fills; empty: no gap.
  PromptReader(const ServedModel& model, bool add_special_tokens, std::string suffix)
      : model_(model),
        tokenizer_(model.need_tokenizer()),
        add_special_tokens_(add_special_tokens),
        suffix_(std::move(suffix)) {
    if (suffix_.empty()) return;
    fill_ = FillInMiddle::of(tokenizer_);
    if (!fill_)
      unserved_field("suffix",
                     fmt::format("filling in the middle with {}, which has no tokens for it,", model.id));
  }

  void read(const Json& prompt, CompletionRequest& into) const {
    if (prompt.is_array() && prompt.empty()) bad_field("prompt", "is empty");
    const bool is_batch = prompt.is_array() && !prompt[0].is_number();
    if (!is_batch) return add(prompt, into);
    if (prompt.size() > kMaxPrompts)
      bad_field("prompt", "may hold at most {} prompts, got {}", kMaxPrompts, prompt.size());
    for (const Json& one : prompt) add(one, into);
  }

 private:
  void add(const Json& prompt, CompletionRequest& into) const {
    if (!prompt.is_string() && !prompt.is_array())
      bad_field("prompt", "must be a string, token ids, or an array of one of them, got {}", shown(prompt));
    std::vector<int> ids =
        prompt.is_string() ? encode(prompt.get_ref<const std::string&>()) : token_ids(prompt);
    if (ids.empty() && !fill_) bad_field("prompt", "is empty");
    into.prompt_texts.push_back(prompt.is_string() ? prompt.get<std::string>() : tokenizer_.decode(ids));
    into.plan.prompts.push_back(std::move(ids));
  }

  std::vector<int> encode(const std::string& text) const {
    check_text_size(model_, "prompt", text.size());
    if (fill_) return encode_gap(text);
    std::vector<int> ids = tokenizer_.encode(text, {.add_special_tokens = add_special_tokens_});
    if (add_special_tokens_) drop_doubled_bos(ids, tokenizer_);
    return ids;
  }

  std::vector<int> token_ids(const Json& array) const {
    std::vector<int> ids;
    ids.reserve(array.size());
    for (const Json& value : array) {
      const auto id = as_integer(value);
      if (!id) bad_field("prompt", "needs token ids, got {}", shown(value));
      if (*id < 0 || *id >= model_.vocabulary)
        bad_field("prompt", "holds token {}, outside the vocabulary of {} tokens", *id, model_.vocabulary);
      ids.push_back(static_cast<int>(*id));
    }
    return fill_ ? fill_->prompt(ids, suffix_) : ids;
  }

  // What the tokenizer puts in front of a text stays in front of the marks.
  std::vector<int> encode_gap(const std::string& text) const {
    const std::vector<int> plain = tokenizer_.encode(text, {.add_special_tokens = false});
    std::vector<int> ids = tokenizer_.encode("", {.add_special_tokens = add_special_tokens_});
    if (!ids.empty()) ids.resize(1);
    const std::vector<int> filled = fill_->prompt(plain, suffix_);
    ids.insert(ids.end(), filled.begin(), filled.end());
    return ids;
  }

  const ServedModel& model_;
  const text::Tokenizer& tokenizer_;
  bool add_special_tokens_;
  std::string suffix_;
  std::optional<FillInMiddle> fill_;
};

int read_best_of(const JsonFields& in, int choices, bool is_stream) {
  const auto best_of = in.integer("best_of", 1, kMaxChoices);
  if (!best_of) return choices;
  if (*best_of < choices) bad_field("best_of", "must be at least n = {}, got {}", choices, *best_of);
  if (*best_of > choices && is_stream)
    bad_field("best_of", "cannot be above n in a stream: answers are ranked when all are there");
  return static_cast<int>(*best_of);
}

void read_limits(const JsonFields& in, decode::GenerationRequest& request) {
  request.max_tokens = in.count("max_tokens", 0).value_or(kDefaultMaxTokens);
  read_logprobs(in, request);  // its own form, and the chat's, sent by clients that share code between both routes
}

}  // namespace

CompletionRequest parse_completion_request(const Json& body, const ServedModel& model) {
  const JsonFields in(body);
  const CommonFields common = read_common_fields(in, model);

  const StreamFields wire = read_stream(in);
  CompletionRequest completion;
  completion.choices = read_choices(in);
  completion.plan.choices = read_best_of(in, completion.choices, wire.stream);
  completion.echo = in.boolean("echo").value_or(false);
  completion.stream = wire.stream;
  completion.include_usage = wire.include_usage;
  decode::GenerationRequest& request = completion.plan.common;
  request.sampling = common.sampling;
  request.stop = read_stop(in);
  request.ignore_eos = common.ignore_eos;
  read_limits(in, request);
  read_answer_fields(in, model, request);
  completion.shows_logprobs = request.logprobs;
  completion.returns_token_ids = in.boolean("return_token_ids").value_or(false);
  request.logprobs |= completion.plan.choices > completion.choices;
  if (const auto output = read_structured_output(in, OutputFields::openai)) {
    completion.grammar = compile_output(model, *output);
    request.constraint = constraint_of(model, completion.grammar);
  }

  const Json* prompt = in.find("prompt");
  if (!prompt) bad_field("prompt", "is required");
  const std::string suffix = in.string("suffix").value_or("");
  if (completion.echo && !suffix.empty()) bad_field("echo", "cannot be combined with 'suffix'");
  PromptReader(model, in.boolean("add_special_tokens").value_or(true), suffix).read(*prompt, completion);
  refuse_unheeded_fields(in);
  for (const auto& ids : completion.plan.prompts)
    check_context(model, "prompt", ids.size(), request.max_tokens);
  return completion;
}

}  // namespace godwit::serve
