#include "decode/step_planner.h"

#include <algorithm>
#include <tuple>

namespace godwit::decode {
namespace {

auto turn_of(const ActiveRow& row) {
  const Job::Impl& job = row.job();
  return std::tuple(job.request.priority, row.left() - StepPlanner::kAgeing * row.passed, job.arrival);
}

}  // namespace

PlannedStep StepPlanner::plan(const Rows& rows, const PrefixSharing& sharing) const {
  PlannedStep step;
  std::vector<ActiveRow*> joiners;
  for (const auto& row : rows) {
    if (!row->is_begun || row->leader || row->stalled_since) continue;
    if (!row->is_decoding()) {
      joiners.push_back(row.get());
      continue;
    }
    step.spans.push_back({row.get(), 1});
    ++step.makers;
  }
  if (!joiners.empty()) add_prompts(step, rows, std::move(joiners), sharing);
  std::ranges::stable_sort(step.spans, {}, [](const PlannedSpan& each) { return &each.row->home(); });
  return step;
}

void StepPlanner::add_prompts(PlannedStep& step, const Rows& rows, std::vector<ActiveRow*> joiners,
                              const PrefixSharing& sharing) const {
  std::ranges::sort(joiners, {}, [](const ActiveRow* row) { return turn_of(*row); });
  int left = prompt_tokens_beside(step.makers, joiners.front()->position());
  std::size_t taken = 0;
  for (; taken < joiners.size() && left > 0 && (is_native_ || taken == 0); ++taken) {
    const int span = joiners[taken]->next_span(left, sharing.stop_of(*joiners[taken], rows));
    step.spans.push_back({joiners[taken], span});
    step.prompt_tokens += span;
    left -= span;
  }
  for (; taken < joiners.size(); ++taken) joiners[taken]->passed += step.prompt_tokens;
}

int StepPlanner::prompt_tokens_beside(int makers, int position) const {
  if (!is_native_) return kReferenceChunk;
  if (makers == 0) return kNativeChunk;
  return prefill_tokens_.value_or(sizer_.tokens(makers, position));
}

void StepPlanner::saw(const PlannedStep& step, double seconds) {
  if (is_native_) sizer_.saw(step.makers, step.prompt_tokens, seconds);
}

}  // namespace godwit::decode
