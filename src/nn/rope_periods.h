// The period vectors behind Rope's freqs form, f32 [dims / 2]. Private to nn; tested against mlx-lm's own
// classes.
#pragma once

#include "nn/rope.h"

namespace godwit::nn {

mx::array plain_periods(int dims, double base);  // base^(2i / dims)
mx::array backward_periods(int dims, double base);  // -exp(i ln(base) / half)
mx::array llama3_periods(const Rope::Options& options);
mx::array yarn_periods(const Rope::Options& options);
mx::array longrope_periods(const Rope::Options& options);
mx::array proportional_periods(const Rope::Options& options);

// What yarn multiplies into the rotated part: g(mscale) / g(mscale_all_dim), g(m) = 0.1 m ln(factor) + 1.
double yarn_input_scale(const checkpoint::RopeScaling& scaling);
// sqrt(1 + ln(f) / ln(original)), f = max / original; 1 when f <= 1.
double longrope_input_scale(const Rope::Options& options);

}  // namespace godwit::nn
