#include "serve/answer_fields.h"

#include <limits>

#include "serve/request_error.h"
#include "serve/sampling_fields.h"

namespace godwit::serve {
namespace {

std::vector<int> read_stop_tokens(const JsonFields& in, const ServedModel& model) {
  std::vector<int> ids;
  const Json* list = in.array("stop_token_ids");
  if (!list) return ids;
  const std::string param = in.path_of("stop_token_ids");
  if (list->size() > kMostStopTokens)
    bad_field(param, "may hold at most {} ids, got {}", kMostStopTokens, list->size());
  for (const Json& value : *list) {
    const auto id = as_integer(value);
    if (!id) bad_field(param, "needs token ids, got {}", shown(value));
    if (*id < 0 || *id >= model.vocabulary)
      bad_field(param, "names token {}, outside the vocabulary of {} tokens", *id, model.vocabulary);
    ids.push_back(static_cast<int>(*id));
  }
  return ids;
}

// Whoever sends an empty one believes to be alone and is not.
std::string read_cache_salt(const JsonFields& in) {
  const auto salt = in.string("cache_salt");
  if (!salt) return "";
  if (salt->empty()) bad_field(in.path_of("cache_salt"), "is empty");
  check_text(in.path_of("cache_salt"), *salt);
  return *salt;
}

}  // namespace

void read_answer_fields(const JsonFields& in, const ServedModel& model, decode::GenerationRequest& into) {
  into.stop_token_ids = read_stop_tokens(in, model);
  into.min_tokens = in.count("min_tokens", 0).value_or(0);
  if (into.max_tokens >= 0 && into.min_tokens > into.max_tokens)
    bad_field(in.path_of("min_tokens"), "must be at most the limit of {} tokens, got {}", into.max_tokens,
              into.min_tokens);
  into.include_stop_text = in.boolean("include_stop_str_in_output").value_or(false);
  into.cache_salt = read_cache_salt(in);
  into.priority = in.count("priority", std::numeric_limits<std::int64_t>::min()).value_or(0);
}

void read_logprobs(const JsonFields& in, decode::GenerationRequest& into) {
  const Json* wanted = in.find("logprobs");
  if (wanted && wanted->is_number()) {  // the legacy form: how many alternatives
    into.logprobs = true;
    into.top_logprobs = static_cast<int>(*in.integer("logprobs", 0, kMaxTopLogprobs));
  } else {
    into.logprobs = in.boolean("logprobs").value_or(false);
  }
  const auto top = in.integer("top_logprobs", 0, kMaxTopLogprobs);
  if (top.value_or(0) > 0 && !into.logprobs)
    bad_field(in.path_of("top_logprobs"), "needs \"logprobs\": true, got {}", *top);
  if (top) into.top_logprobs = static_cast<int>(*top);
}

}  // namespace godwit::serve
