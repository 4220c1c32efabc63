// POST /v1/completions, the way in: body -> typed request -> tokens.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "serve/generation_plan.h"
#include "serve/served_model.h"
#include "text/grammar.h"

namespace godwit::serve {

inline constexpr std::size_t kMaxPrompts = 2048;

struct CompletionRequest {
  GenerationPlan plan = {};  // `best_of` choices
  int choices = 1;           // n: of each prompt's answers those with the best mean log-probability
  std::vector<std::string> prompt_texts = {};  // one per prompt, as echoed
  bool echo = false;
  bool shows_logprobs = false;  // the plan has them for ranking, too
  bool returns_token_ids = false;
  bool stream = false;
  bool include_usage = false;
  std::shared_ptr<const text::CompiledGrammar> grammar = {};  // what every answer must be; null: anything
};

// `prompt` is a string, an array of strings, an array of token ids or an array of such arrays. Throws
// RequestError.
CompletionRequest parse_completion_request(const Json& body, const ServedModel& model);

}  // namespace godwit::serve
