// The residual branches of a decoder layer: x + after(inner(before(x))), with the norms that a family has.
// Written once for both modes: composed ops in `reference`, one fused primitive each in `native`.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/mx.h"
#include "cache/state.h"
#include "nn/feed_forward.h"
#include "nn/mixer.h"
#include "nn/norm.h"

namespace godwit::nn {

enum class ResidualSum {
  plain,
  clipped_f16,  // in f16 formed in f32 and clipped to its range: the streams of the Gemma families leave it
};

struct BranchNorms {
  std::optional<Norm> before = {};
  std::optional<Norm> after = {};
  ResidualSum sum = ResidualSum::plain;
  std::optional<double> multiplier = {};  // of the branch, in its dtype, before the sum
};

class MixerBranch {
 public:
  // In native mode throws Error{unsupported} for what Mixer::plan() cannot say and for a branch of another form than
  // the primitive's: a norm before it, no multiplier.
  MixerBranch(BranchNorms norms, std::unique_ptr<const Mixer> mixer);
  mx::array operator()(const mx::array& x, const cache::Step& step, cache::LayerState& state) const;

 private:
  BranchNorms norms_;
  std::unique_ptr<const Mixer> mixer_;
  std::function<mx::array(const mx::array&, cache::LayerState&)> native_;  // the fused primitive
};

class FeedForwardBranch {
 public:
  // In native mode as above.
  FeedForwardBranch(BranchNorms norms, std::unique_ptr<const FeedForward> feed_forward);
  mx::array operator()(const mx::array& x) const;

 private:
  BranchNorms norms_;
  std::unique_ptr<const FeedForward> feed_forward_;
  std::function<mx::array(const mx::array&)> native_;  // the fused primitive
};

}  // namespace godwit::nn
