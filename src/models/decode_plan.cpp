#include "models/decode_plan.h"

#include <fmt/format.h>

#include <array>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/mx_ops.h"
#include "base/sha256.h"

namespace godwit::models {
namespace {

// A step over fresh rows of that many tokens each, which is dropped unrun.
ops::StepPlan recorded(const Model& graph, const cache::StateStore& store, std::span<const int> counts) {
  std::vector<cache::Row> rows;
  for (std::size_t i = 0; i < counts.size(); ++i) rows.push_back(store.create());
  std::vector<cache::RowSpan> spans;
  for (std::size_t i = 0; i < counts.size(); ++i) spans.push_back({&rows[i], counts[i]});
  cache::Step step = store.plan(spans);
  const std::vector<int> zeros(static_cast<std::size_t>(step.token_count()));
  const mx::array tokens(zeros.begin(), {step.token_count()}, mx::int32);
  const mx::array hidden = graph.hidden(tokens, step);
  return {tokens, hidden, graph.logits(hidden)};
}

}  // namespace

std::unique_ptr<const DecodePlan> record_plan(const Model& graph, const cache::StateStore& store,
                                              std::string_view chosen_by) {
  constexpr std::array<int, 1> kOne = {1};
  constexpr std::array<int, 2> kSeveral = {3, 2};
  ops::StepPlan steps = recorded(graph, store, kOne);
  if (!steps.equals(recorded(graph, store, kSeveral)))
    fail(ErrorCode::unsupported, "plan", "the graph of a step depends on the number of its tokens or rows");
  checkpoint::Fingerprint key{sha256_of(fmt::format("godwit-plan-1\n{}{}", chosen_by, steps.text()))};
  return std::make_unique<const DecodePlan>(DecodePlan{std::move(steps), std::move(key)});
}

}  // namespace godwit::models
