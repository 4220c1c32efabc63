// POST /v1/completions, the way in: body -> typed request -> tokens.
#pragma once

#include <string>
#include <vector>

#include "serve/generation_plan.h"
#include "serve/served_model.h"

namespace godwit::serve {

inline constexpr std::size_t kMaxPrompts = 2048;

struct CompletionRequest {
  GenerationPlan plan = {};
  std::vector<std::string> prompt_texts = {};  // one per prompt, as echoed
  bool echo = false;
  bool stream = false;
  bool include_usage = false;
};

// `prompt` is a string, an array of strings, an array of token ids or an array of such arrays. Throws
// RequestError.
CompletionRequest parse_completion_request(const Json& body, const ServedModel& model);

}  // namespace godwit::serve
