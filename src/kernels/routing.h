// What a layer of experts computes beside its products with quantized weights, all of it in f32: the scores
// of the router, their softmax, and the sum over the experts of a row. Sums over a row's elements run in
// sixteen lanes, lane i over elements i, i + 16, ... in ascending order, and end in the one tree of
// lanes_scalar-inl.h.
#pragma once

#include <cstdint>

namespace godwit::kernels {

// y[r, o] = sum over k of x[r, k] w[o, k], each lane by fma: products with a small matrix of f32.
struct RowDotsArgs {
  const float* x;        // [rows, n], rows x_stride apart
  const float* weights;  // [outputs, n], rows back to back
  float* y;              // [rows, outputs], rows y_stride apart
  std::int64_t rows, n, outputs;
  std::int64_t x_stride, y_stride;  // in elements
};

// y = exp(x - max x) / sum exp(x - max x), row by row. A NaN or a +infinity makes the whole row NaN.
struct SoftmaxArgs {
  const float* x;  // [rows, n], rows back to back
  float* y;        // the same; may be x
  std::int64_t rows, n;
};

// y = 1 / (1 + exp(-x)). y may be x.
struct SigmoidArgs {
  const float* x;
  float* y;
  std::int64_t n;
};

// y = sum over j of weights[j] rows[index[j]]: the first product rounded, the others added by fma in the
// order of j. +0 for no terms.
struct WeightedSumArgs {
  const float* rows;  // rows of n elements, back to back
  const std::int32_t* index;
  const float* weights;
  std::int64_t count;
  float* y;  // [n]; none of the rows
  std::int64_t n;
};

}  // namespace godwit::kernels
