// The residual branches of a decoder layer: x + after(inner(before(x))), `after` where a family has one.
// Written once for both modes: composed ops in `reference`, one fused primitive each in `native`.
#pragma once

#include <memory>
#include <optional>

#include "base/mx.h"
#include "cache/state.h"
#include "nn/attention.h"
#include "nn/mlp.h"
#include "nn/norm.h"

namespace godwit::nn {

enum class ResidualSum {
  plain,
  clipped_f16,  // in f16 formed in f32 and clipped to its range: the streams of the Gemma families leave it
};

struct BranchNorms {
  RmsNorm before;
  std::optional<RmsNorm> after = {};
  ResidualSum sum = ResidualSum::plain;
};

class AttentionBranch {
 public:
  // In native mode throws Error{unsupported} for what Attention::plan() cannot say.
  AttentionBranch(BranchNorms norms, Attention attention);
  mx::array operator()(const mx::array& x, const cache::Step& step, cache::LayerState& state) const;

 private:
  BranchNorms norms_;
  Attention attention_;
  std::shared_ptr<const ops::AttentionPlan> native_;
};

class MlpBranch {
 public:
  // In native mode throws Error{unsupported} for what GatedMlp::plan() cannot say.
  MlpBranch(BranchNorms norms, GatedMlp mlp);
  mx::array operator()(const mx::array& x) const;

 private:
  BranchNorms norms_;
  GatedMlp mlp_;
  std::shared_ptr<const ops::MlpPlan> native_;
};

}  // namespace godwit::nn
