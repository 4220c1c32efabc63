// The router of a layer of experts: a small matrix of f32, whose scores and softmax are f32 too.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/expert_groups.h"
#include "ops/native_runtime.h"

namespace godwit::ops {

struct RouterPlan {
  std::int64_t experts = 0;
  std::int64_t chosen = 0;           // for each row
  std::vector<float> weights;        // [experts, hidden]
  bool softmax_over_chosen = false;  // of the chosen scores, after the choice; else of all, before it
  bool is_renormalized = false;      // shares divided by their sum
  Ties ties = Ties::higher_index;
};

// For each row its experts by ascending index, and the share of each.
struct RoutedRows {
  std::span<const std::int32_t> experts;  // [rows * chosen]
  std::span<const float> shares;
};

// x [rows, hidden]. The choice is that of the scores, which the softmax only maps. In the runtime's scratch.
RoutedRows route(NativeRuntime& runtime, const RouterPlan& plan, const float* x, std::int64_t rows);

// y[r, o] = x[r] . weights[o] for all rows and outputs, on the pool.
void row_dots(NativeRuntime& runtime, std::span<const float> weights, const float* x, std::int64_t rows,
              std::span<float> y);

}  // namespace godwit::ops
