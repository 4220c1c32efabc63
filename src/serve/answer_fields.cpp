#include "serve/answer_fields.h"

#include <limits>

#include "serve/request_error.h"

namespace godwit::serve {
namespace {

constexpr std::int64_t kMostInt = std::numeric_limits<int>::max();
constexpr std::int64_t kLeastInt = std::numeric_limits<int>::min();

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

}  // namespace

void read_answer_fields(const JsonFields& in, const ServedModel& model, decode::GenerationRequest& into) {
  into.stop_token_ids = read_stop_tokens(in, model);
  into.min_tokens = static_cast<int>(in.integer("min_tokens", 0, kMostInt).value_or(0));
  if (into.max_tokens >= 0 && into.min_tokens > into.max_tokens)
    bad_field(in.path_of("min_tokens"), "must be at most the limit of {} tokens, got {}", into.max_tokens,
              into.min_tokens);
  into.include_stop_text = in.boolean("include_stop_str_in_output").value_or(false);
  into.priority = static_cast<int>(in.integer("priority", kLeastInt, kMostInt).value_or(0));
}

}  // namespace godwit::serve
