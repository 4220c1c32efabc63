// Experts: groups of equal networks of which each token runs a few, chosen by index. The forms of mlx-lm's
// switch_layers.py (SwitchLinear, QuantizedSwitchLinear, SwitchGLU).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mx.h"
#include "checkpoint/weight.h"
#include "checkpoint/weight_scope.h"
#include "nn/activations.h"
#include "ops/native_experts.h"

namespace godwit::nn {

// One matrix an expert: y = x W_e^T (+ b_e) for each chosen e.
class SwitchLinear {
 public:
  // Reads the matrices that `names` finds below `scope` and, if asked for, scope.<names.stacked>.bias
  // [experts, outputs].
  SwitchLinear(const checkpoint::WeightScope& scope, const checkpoint::ExpertNames& names, int experts,
               int inputs, int outputs, bool bias = false);

  // x [.., 1, inputs] of which the leading axes broadcast to those of `chosen` (u32 or i32) -> [chosen.., 1,
  // outputs]. `sorted`: the indices ascend. Dense experts are one gather_mm, quantized ones one gather_qmm.
  //
  // MLX has no dense gather on CPU but in f32. Dense experts of another dtype, and GGUF blocks without an MLX
  // layout, are widened for the call, exactly: the chosen ones where the call has fewer of them than the
  // model, all otherwise. The product is then formed in f32 and rounded once, to what x and the weight
  // promote to. It has no counterpart in mlx-lm on CPU where that is not f32.
  mx::array operator()(const mx::array& x, const mx::array& chosen, bool sorted) const;

  // Whether the matrices are packed for our kernels, and those.
  bool is_native() const { return !weight_.packed_experts.empty(); }
  const std::vector<std::shared_ptr<const ops::PackedMatrix>>& native() const { return weight_.packed_experts; }

 private:
  mx::array product(const mx::array& x, const mx::array& chosen, bool sorted) const;
  mx::array widened_product(const mx::array& x, const mx::array& chosen, bool sorted) const;

  checkpoint::Weight weight_;
  std::optional<mx::array> bias_;
};

// The gated network of each expert: down(activation(gate(x)) * up(x)).
class SwitchGlu {
 public:
  struct Names {
    checkpoint::ExpertNames gate, up, down;
  };
  struct Options {
    int hidden = 0;
    int intermediate = 0;  // of one expert
    int experts = 0;
    Activation activation = Activation::silu;
    bool bias = false;
    Names names;
  };
  // Names of most families: "switch_mlp.gate_proj" and so on, or one tensor an expert,
  // "experts.{}.gate_proj".
  static Names usual_names();
  // As transformers 5 writes them: "experts.gate_up_proj", whose rows are those of gate, then of up, and
  // "experts.down_proj". `stacked` is the prefix of their names in converted files: "switch_mlp".
  static Names fused_names(const std::string& stacked);

  SwitchGlu(const checkpoint::WeightScope& scope, const Options& options);

  bool is_native() const { return gate_.is_native() && up_.is_native() && down_.is_native(); }
  // For a fused primitive. Error{unsupported} for biases.
  std::vector<ops::GatedMatrices> native() const;
  Activation activation() const { return activation_; }

  // x [tokens, hidden], chosen u32 or i32 [tokens, k] -> [tokens, k, hidden]. From 64 indices on, tokens go
  // sorted by expert and come back in their order, as in mlx-lm.
  mx::array operator()(const mx::array& x, const mx::array& chosen) const;

 private:
  mx::array forward(const mx::array& x, const mx::array& chosen, bool sorted) const;

  SwitchLinear gate_;
  SwitchLinear up_;
  SwitchLinear down_;
  Activation activation_;
  bool has_bias_;
};

}  // namespace godwit::nn
