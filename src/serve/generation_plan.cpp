#include "serve/generation_plan.h"

namespace godwit::serve {

decode::GenerationRequest GenerationPlan::request(std::size_t index) const {
  decode::GenerationRequest request = common;
  request.prompt = prompts[index];
  request.choices = choices;
  return request;
}

int GenerationPlan::prompt_tokens() const {
  std::size_t count = 0;
  for (const auto& prompt : prompts) count += prompt.size();
  return static_cast<int>(count);
}

}  // namespace godwit::serve
