// Rotary position embedding in every form that mlx-lm's rope factory makes.
//
// Two forms exist and their bits differ: `base` (MLX derives the frequencies) and `freqs` (a vector of
// periods, angle = position / period, formed here in f32 on the MLX device with the oracle's operations).
// Each type keeps the form its oracle uses.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/mx.h"
#include "cache/state.h"
#include "checkpoint/config.h"
#include "ops/native_branch.h"

namespace godwit::nn {

class Rope {
 public:
  struct Options {
    int dims = 0;  // rotated part of a head; the rest passes through
    // Turns by negative angles: the periods are -exp(i ln(base) / half), not powers of the base. Without scaling only.
    bool backwards = false;
    double base = 10000.0;
    bool by_periods = false;  // the freqs form even where no scaling asks for it
    bool traditional = false;  // pairs (2i, 2i + 1) instead of (i, i + dims / 2)
    std::optional<checkpoint::RopeScaling> scaling;
    std::optional<int> max_positions;         // of the model: dynamic and longrope need it
    double proportional_part = 1.0;           // share of dims that turns: proportional only
    std::optional<mx::array> period_factors;  // f32 [dims / 2]: a GGUF file's rope_freqs
  };
  // An unknown scaling type, or one whose keys are missing, is Error{unsupported} naming it.
  explicit Rope(const Options& options);

  // x [tokens, heads, head_dim]: row r holds tokens[r] of them, at positions offsets[r], offsets[r] + 1, ...
  mx::array operator()(const mx::array& x, std::span<const int> offsets, std::span<const int> tokens) const;
  // The same with the positions of the step, which no graph keeps as numbers unless the base follows the length.
  mx::array operator()(const mx::array& x, const cache::Step& step) const;

  // The rotation of native primitives. Error{unsupported} naming what they do not turn: pairs of neighbours,
  // a base that follows the length, a factor on the rotated part.
  ops::RopePlan plan() const;

  // The vector of periods; absent in the base form.
  const std::optional<mx::array>& periods() const { return periods_; }

 private:
  struct Begin {
    mx::array offset;  // i32, no axes
    float base;
  };
  // x packed; where each row begins.
  mx::array rotated(const mx::array& x, const std::vector<Begin>& begins, std::span<const int> tokens) const;
  // [1, heads, tokens, head_dim] of one row
  mx::array rotate(const mx::array& x, const Begin& begin) const;
  float base_at(int total) const;
  mx::array scaled(const mx::array& x) const;

  int dims_;
  bool traditional_;
  double base_;
  float position_scale_ = 1.0f;
  double input_scale_ = 1.0;  // multiplied into the rotated part, in x's dtype
  std::optional<mx::array> periods_;
  std::optional<double> dynamic_factor_;  // the base follows the running length
  int max_positions_ = 0;
};

}  // namespace godwit::nn
