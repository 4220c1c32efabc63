#include "ops/expert_router.h"

#include <algorithm>

namespace godwit::ops {
namespace {

// Of one row: shares [chosen] of the softmax values or raw scores of its experts.
void take_shares(const NativeRuntime& runtime, const RouterPlan& plan, std::span<const float> values,
                 std::span<const std::int32_t> experts, std::span<float> shares) {
  for (std::size_t j = 0; j < experts.size(); ++j) shares[j] = values[static_cast<std::size_t>(experts[j])];
  if (plan.softmax_over_chosen) runtime.kernels.softmax({shares.data(), shares.data(), 1, plan.chosen});
  if (!plan.is_renormalized) return;
  float sum = 0;
  for (const float share : shares) sum += share;
  for (float& share : shares) share /= sum;
}

}  // namespace

void row_dots(NativeRuntime& runtime, std::span<const float> weights, const float* x, std::int64_t rows,
              std::span<float> y) {
  constexpr std::int64_t kTogether = 4;  // outputs that the kernel walks at once
  const std::int64_t outputs = static_cast<std::int64_t>(y.size()) / rows;
  const std::int64_t n = static_cast<std::int64_t>(weights.size()) / outputs;
  runtime.share((outputs + kTogether - 1) / kTogether, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = begin * kTogether, last = std::min(end * kTogether, outputs);
    runtime.kernels.row_dots({.x = x,
                              .weights = weights.data() + first * n,
                              .y = y.data() + first,
                              .rows = rows,
                              .n = n,
                              .outputs = last - first,
                              .x_stride = n,
                              .y_stride = outputs});
  });
}

RoutedRows route(NativeRuntime& runtime, const RouterPlan& plan, const float* x, std::int64_t rows) {
  const auto scores = runtime.scratch.take<float>(rows * plan.experts);
  const auto values = runtime.scratch.take<float>(rows * plan.experts);
  const auto work = runtime.scratch.take<std::int32_t>(rows * plan.experts);
  const auto experts = runtime.scratch.take<std::int32_t>(rows * plan.chosen);
  const auto shares = runtime.scratch.take<float>(rows * plan.chosen);
  row_dots(runtime, plan.weights, x, rows, scores);
  const auto of_row = [](auto all, std::int64_t row, std::int64_t n) {
    return all.subspan(static_cast<std::size_t>(row * n), static_cast<std::size_t>(n));
  };
  runtime.share(rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const auto own = of_row(scores, row, plan.experts), mapped = of_row(values, row, plan.experts);
      const auto chosen = of_row(experts, row, plan.chosen);
      choose_experts(own, plan.ties, chosen, of_row(work, row, plan.experts));
      if (!plan.softmax_over_chosen) runtime.kernels.softmax({own.data(), mapped.data(), 1, plan.experts});
      take_shares(runtime, plan, plan.softmax_over_chosen ? own : mapped, chosen,
                  of_row(shares, row, plan.chosen));
    }
  });
  return {experts, shares};
}

}  // namespace godwit::ops
