// Nodes of an MLX graph that our executor runs. Each takes one array of rows and gives one array of f32 rows;
// MLX's graph is the intermediate form, not the scheduler. For tests, training and mixed graphs MLX's evaluator runs
// them too, and its transforms differentiate them (mixed_graph.h).
#pragma once

#include "base/mx.h"
#include "ops/native_runtime.h"
#include "ops/step_layers.h"

#include <mlx/primitives.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace godwit::ops {

class Constants;
struct RopePlan;

// Cosines and sines of a rotation at the positions of a step's tokens, [tokens, dims / 2] each.
struct RopeTable {
  const float* cosines = nullptr;
  const float* sines = nullptr;
};

struct NativeCall {
  const void* input;  // [tokens, ...] row-major, in the dtype of the node's input
  float* output;      // [tokens, ...]; no alias of the input
  std::int64_t tokens;
  NativeRuntime& runtime;
  StepLayers layers = {};  // of the step
  RopeTable rope = {};             // of the node's rope(); null: it forms its own
};

class NativePrimitive : public mx::Primitive {
 public:
  NativePrimitive();
  // On the engine thread. What it takes from the scratch is gone afterwards.
  virtual void run(const NativeCall& call) const = 0;

  // What it was made of at load. Two nodes of one name and layer over the same constants do the same.
  virtual const void* constants() const = 0;
  // Shapes and formats of those, for the key of a plan: "NativeLinear q8_0:32:f16 49152x576".
  virtual std::string text() const = 0;
  // The layer of the step that it reads and writes; -1: none.
  virtual int layer() const { return -1; }
  // The rotation that it applies by a token's position; null: none.
  virtual const RopePlan* rope() const { return nullptr; }

  // What run() computes, as an MLX graph in x's dtype: the node's oracle and the rule of its gradients. Over a layer of
  // the step it is Error{unsupported} where the result hangs on more than x: on what earlier steps stored.
  virtual mx::array composed(const mx::array& x, Constants& constants, const StepLayers& layers) const = 0;

  // What the evaluator runs it with from here on; both must outlive that.
  void bind(NativeRuntime& runtime, const StepLayers& layers);
  const StepLayers& bound_layers() const { return layers_; }

  // run() on the thread that evaluates. Error{internal} for a node that is not bound; what run() throws passes through.
  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) final;
  void eval_gpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) final;
  // Those of the composed form. Error{unsupported} with regard to tokens, and what composed() throws.
  std::vector<mx::array> vjp(const std::vector<mx::array>& primals, const std::vector<mx::array>& cotangents,
                             const std::vector<int>& argnums, const std::vector<mx::array>& outputs) final;
  std::vector<mx::array> jvp(const std::vector<mx::array>& primals, const std::vector<mx::array>& tangents,
                             const std::vector<int>& argnums) final;

 private:
  std::vector<mx::array> composed_of(const std::vector<mx::array>& inputs) const;
  void check_differentiable(const mx::array& x) const;

  NativeRuntime* runtime_ = nullptr;
  StepLayers layers_;
};

// The node that applies `primitive` to x, tokens i32 [n] or rows f32 [n, inputs]: f32 [n, outputs].
mx::array native_node(const mx::array& x, std::int64_t outputs, std::shared_ptr<NativePrimitive> primitive);

}  // namespace godwit::ops
