// A level's table from its lanes (V) and its quantized matmul.
#pragma once

#include "kernels/activations-inl.h"
#include "kernels/attention-inl.h"
#include "kernels/attention_merge-inl.h"
#include "kernels/gated-inl.h"
#include "kernels/gated_delta-inl.h"
#include "kernels/kernel_table.h"
#include "kernels/kv_decode-inl.h"
#include "kernels/restore_values-inl.h"
#include "kernels/rms_norm-inl.h"
#include "kernels/rope-inl.h"
#include "kernels/routing-inl.h"
#include "kernels/vector_ops-inl.h"

namespace godwit::kernels {
namespace {

template <class V>
constexpr KernelTable make_table(Kernel<QuantMatmulArgs> quant_matmul) {
  return {
      .level = V::kLevel,
      .rms_norm = rms_norm_body<V>,
      .rope = rope_body<V>,
      .gated = gated_body<V>,
      .add = add_body<V>,
      .argmax = argmax_body<V>,
      .quantize_rows = quantize_rows_body<V>,
      .quant_matmul = quant_matmul,
      .attention = attention_body<V>,
      .attention_merge = attention_merge_body<V>,
      .decode_kv = decode_kv_body<V>,
      .restore_values = restore_values_body<V>,
      .short_conv = short_conv_body<V>,
      .unit_length = unit_length_body<V>,
      .delta_gates = delta_gates_body<V>,
      .delta_rule = delta_rule_body<V>,
      .row_dots = row_dots_body<V>,
      .softmax = softmax_body<V>,
      .sigmoid = sigmoid_body<V>,
      .weighted_sum = weighted_sum_body<V>,
  };
}

}  // namespace
}  // namespace godwit::kernels
