// Normalisation over the last axis, on MLX's fast forms.
#pragma once

#include <memory>
#include <optional>

#include "base/mx.h"
#include "checkpoint/weight_scope.h"
#include "ops/native_layers.h"

namespace godwit::nn {

enum class NormKind { rms, layer };
enum class NormGain {
  weight,           // x * w
  one_plus_weight,  // x * (1 + w): Gemma 1 to 3, Nemotron
  none,
};

struct NormOptions {
  int dims = 0;
  double eps = 0;
  NormKind kind = NormKind::rms;
  NormGain gain = NormGain::weight;
  bool bias = false;  // layer norms only
};

class Norm {
 public:
  // Reads scope.weight [dims], unless there is no gain, and with a bias scope.bias [dims]. The sum 1 + w is formed in
  // w's dtype, as mlx-lm forms it at each call; a file that stores the sum already (GGUF) is taken as it is.
  // In native mode a norm other than rms by a weight is Error{unsupported}.
  Norm(const checkpoint::WeightScope& scope, const NormOptions& options);
  mx::array operator()(const mx::array& x) const;
  // For a fused primitive. Error{unsupported} naming a kind that our kernels lack.
  ops::NormPlan plan() const;

 private:
  NormKind kind_;
  std::optional<mx::array> weight_;
  std::optional<mx::array> bias_;
  float eps_;
  std::shared_ptr<const ops::NormPlan> native_;  // in `native` mode
};

}  // namespace godwit::nn
