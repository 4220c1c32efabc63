// Experts of bf16 or f16 that are not quantized: what is promised of a model with such ones.
#pragma once

#include <array>

#include "models/family.h"

namespace godwit::models {

// Configs with num_experts that are dense and not said to be f32 (GGUF files apart, whose activations are
// f32).
bool has_narrow_dense_experts(const checkpoint::Config& config);

// mlx-lm cannot run those on CPU: MLX gathers dense matrices in f32 alone. The graph forms the products in
// f32 and rounds each once (nn/switch_glu.h; the bound is derived in nn/experts_test.cpp). So does MLX's own
// product of such matrices, so that the bits are mlx-lm's where one matmul an expert stands in for the gather
// (tests/oracle/experts.py).
constexpr std::string_view kDenseExpertsFigures =
    "on CPU mlx-lm runs dense experts in f32 alone: each product of an expert is at most half a unit in the "
    "last place of its dtype, and the error of an f32 sum, from the exact one; all logits have the bits of "
    "mlx-lm with one matmul an expert";

constexpr LesserPromise dense_experts(bool (*applies)(const checkpoint::Config& config)) {
  return {.id = "dense-experts", .applies = applies, .figures = kDenseExpertsFigures};
}
inline constexpr std::array<LesserPromise, 1> kDenseExperts = {{dense_experts(has_narrow_dense_experts)}};

}  // namespace godwit::models
