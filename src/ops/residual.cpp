#include "ops/residual.h"

#include <algorithm>

namespace godwit::ops {

kernels::Activations normalized_input(const NativeCall& call, const NormPlan& before) {
  NativeRuntime& runtime = call.runtime;
  const auto n = static_cast<std::int64_t>(before.weight.size());
  const auto* x = static_cast<const float*>(call.input);
  const auto normed = runtime.scratch.take<float>(call.tokens * n);
  runtime.share(call.tokens, [&](std::int64_t begin, std::int64_t end) {
    normalize(runtime, before, x + begin * n, normed.data() + begin * n, end - begin);
  });
  return quantize(runtime, normed.data(), call.tokens, n);
}

void add_branch(const NativeCall& call, const float* inner, const PackedLinear& layer,
                const std::optional<NormPlan>& after) {
  NativeRuntime& runtime = call.runtime;
  const std::int64_t n = layer.outputs();
  const auto* x = static_cast<const float*>(call.input);
  const auto activations = quantize(runtime, inner, call.tokens, layer.inputs());
  if (!after) {
    std::copy(x, x + call.tokens * n, call.output);
    const Product product{layer, call.output, n, /*adds=*/true};
    return multiply(runtime, activations, call.tokens, {&product, 1});
  }
  const auto branch = runtime.scratch.take<float>(call.tokens * n);
  const Product product{layer, branch.data(), n};
  multiply(runtime, activations, call.tokens, {&product, 1});
  runtime.share(call.tokens, [&](std::int64_t begin, std::int64_t end) {
    float* const rows = branch.data() + begin * n;
    normalize(runtime, *after, rows, rows, end - begin);
    runtime.kernels.add({x + begin * n, rows, call.output + begin * n, (end - begin) * n});
  });
}

}  // namespace godwit::ops
