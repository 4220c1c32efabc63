// Which rows of a step go through which expert. Comparisons and integers only: what a row chooses depends on
// its own scores, and rows that chose the same expert come to lie together, so that they share one read of
// its weights.
#pragma once

#include <cstdint>
#include <span>

#include "ops/native_runtime.h"

namespace godwit::ops {

// Between equal scores: mlx's argpartition orders by (value, index), so that its last columns hold the higher
// index, and its first columns over negated scores the lower one.
enum class Ties { lower_index, higher_index };

// The chosen.size() largest scores, by ascending index. A NaN counts as largest, so that it shows in the
// answer instead of being passed over. `work` holds scores.size() elements, at least as many as are chosen.
void choose_experts(std::span<const float> scores, Ties ties, std::span<std::int32_t> chosen,
                    std::span<std::int32_t> work);

// A place is one row at one expert. Places of one expert lie together, experts ascend, and so do the rows of
// one.
struct ExpertGroups {
  std::span<const std::int32_t> begins;  // [experts + 1]: expert e has places [begins[e], begins[e + 1])
  std::span<const std::int32_t> rows;    // [places]: the row of each
  std::span<const std::int32_t> places;  // [rows * chosen]: where the j-th choice of a row lies

  std::int64_t count(std::int64_t expert) const {
    const auto e = static_cast<std::size_t>(expert);
    return begins[e + 1] - begins[e];
  }
};

// experts [rows * chosen], numbers below `count`. Fewer than 2^31 places. In the scratch.
ExpertGroups group_by_expert(Scratch& scratch, std::span<const std::int32_t> experts, std::int64_t chosen,
                             std::int64_t count);

}  // namespace godwit::ops
