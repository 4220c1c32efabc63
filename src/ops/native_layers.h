// The small native nodes: embedding, norm, and a product by itself (the head).
#pragma once

#include <memory>
#include <vector>

#include "base/mx.h"
#include "kernels/gated.h"
#include "ops/packed_matrix.h"

namespace godwit::ops {

// x / sqrt(mean(x^2) + epsilon) * weight, row by row; one epsilon for a vector of weights.
struct NormPlan {
  std::vector<float> weight;
  float epsilon = 0;
};
// rows of weight.size() elements, x_stride apart; y may be x.
void normalize(const NativeRuntime& runtime, const NormPlan& norm, const float* x, float* y,
               std::int64_t rows);

// gate = activation(gate) * up, both [rows, n] back to back, shared out among the threads.
void activate_in_place(NativeRuntime& runtime, kernels::Activation activation, float* gate, const float* up,
                       std::int64_t rows, std::int64_t n);

// tokens i32 [n] -> f32 [n, columns]: rows of the matrix times `scale`. A token outside is
// Error{invalid_argument}.
mx::array native_embedding(const mx::array& tokens, std::shared_ptr<const PackedMatrix> matrix, float scale);
mx::array native_norm(const mx::array& x, std::shared_ptr<const NormPlan> norm);
mx::array native_linear(const mx::array& x, std::shared_ptr<const PackedLinear> layer);

}  // namespace godwit::ops
