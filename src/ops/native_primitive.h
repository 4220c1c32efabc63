// Nodes of an MLX graph that our executor runs. Each takes one array of rows and gives one array of f32 rows;
// MLX's graph is the intermediate form, not the scheduler.
#pragma once

#include "base/mx.h"
#include "ops/native_runtime.h"

#include <mlx/primitives.h>

#include <memory>

namespace godwit::ops {

struct NativeCall {
  const void* input;  // [tokens, ...] row-major, in the dtype of the node's input
  float* output;      // [tokens, ...]; no alias of the input
  std::int64_t tokens;
  NativeRuntime& runtime;
};

class NativePrimitive : public mx::Primitive {
 public:
  NativePrimitive();
  // On the engine thread. What it takes from the scratch is gone afterwards.
  virtual void run(const NativeCall& call) const = 0;

  // MLX's evaluator does not run these: they need the runtime that the executor hands them. Error{internal}.
  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) final;
  void eval_gpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) final;
};

// The node that applies `primitive` to x [tokens, ...]: f32 [tokens, outputs].
mx::array native_node(const mx::array& x, std::int64_t outputs, std::shared_ptr<NativePrimitive> primitive);

}  // namespace godwit::ops
