#include "serve/reasoning_fields.h"

#include <algorithm>
#include <array>

#include "serve/request_error.h"

namespace godwit::serve {
namespace {

constexpr std::array<std::string_view, 7> kEfforts = {"none", "minimal", "low", "medium",
                                                      "high", "xhigh",   "max"};

}  // namespace

ReasoningWish reasoning_of_effort(std::string_view effort, std::string_view param) {
  if (std::ranges::find(kEfforts, effort) == kEfforts.end())
    bad_field(param, "must be one of none, minimal, low, medium, high, xhigh, max, got {}",
              shown(Json(effort)));
  if (effort == "none") return {.is_on = false};
  return {.effort = std::string(effort)};
}

ReasoningWish read_reasoning(const JsonFields& in) {
  ReasoningWish wish;
  if (const auto effort = in.string("reasoning_effort"))
    wish = reasoning_of_effort(*effort, in.path_of("reasoning_effort"));
  for (const auto* name : {"reasoning_budget", "thinking_token_budget"})
    if (const auto budget = in.count(name, -1)) wish.budget = *budget;
  if (wish.budget == 0 && !wish.is_on) wish.is_on = false;
  return wish;
}

}  // namespace godwit::serve
