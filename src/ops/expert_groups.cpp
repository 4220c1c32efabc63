#include "ops/expert_groups.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace godwit::ops {

void choose_experts(std::span<const float> scores, Ties ties, std::span<std::int32_t> chosen,
                    std::span<std::int32_t> work) {
  // A strict order of all experts: which of them come first is one set, however it is found.
  const auto comes_first = [&](std::int32_t a, std::int32_t b) {
    const float x = scores[static_cast<std::size_t>(a)], y = scores[static_cast<std::size_t>(b)];
    if (std::isnan(x) != std::isnan(y)) return std::isnan(x);
    if (x > y || x < y) return x > y;
    return ties == Ties::lower_index ? a < b : a > b;
  };
  const auto end = work.begin() + static_cast<std::ptrdiff_t>(scores.size());
  std::iota(work.begin(), end, 0);
  const auto last = work.begin() + static_cast<std::ptrdiff_t>(chosen.size());
  std::nth_element(work.begin(), last, end, comes_first);
  std::copy(work.begin(), last, chosen.begin());
  std::ranges::sort(chosen);
}

ExpertGroups group_by_expert(Scratch& scratch, std::span<const std::int32_t> experts, std::int64_t chosen,
                             std::int64_t count) {
  const auto places = static_cast<std::int64_t>(experts.size());
  const auto begins = scratch.take<std::int32_t>(count + 1), next = scratch.take<std::int32_t>(count);
  const auto rows = scratch.take<std::int32_t>(places), place_of = scratch.take<std::int32_t>(places);
  std::ranges::fill(begins, 0);
  for (const std::int32_t expert : experts) ++begins[static_cast<std::size_t>(expert) + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::copy(begins.begin(), begins.end() - 1, next.begin());
  for (std::size_t i = 0; i < experts.size(); ++i) {
    place_of[i] = next[static_cast<std::size_t>(experts[i])]++;
    rows[static_cast<std::size_t>(place_of[i])] =
        static_cast<std::int32_t>(static_cast<std::int64_t>(i) / chosen);
  }
  return {begins, rows, place_of};
}

}  // namespace godwit::ops
