#include "nn/rope_periods.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "base/mx_ops.h"

namespace godwit::nn {
namespace {

using checkpoint::RopeScaling;

mx::array f32(double value) { return mx::array(static_cast<float>(value), mx::float32); }

// base^(arange(0, end, 2) / dims)
mx::array powers(double base, int end, int dims) {
  return mx::power(f32(base), mx::arange(0.0, end, 2.0, mx::float32) / f32(dims));
}

int longrope_original(const RopeScaling& scaling) {
  if (!scaling.original_max_position)
    fail(ErrorCode::unsupported, "rope", "{} without original_max_position_embeddings", scaling.type);
  return *scaling.original_max_position;
}

}  // namespace

mx::array plain_periods(int dims, double base) { return powers(base, dims, dims); }

mx::array backward_periods(int dims, double base) {
  const int half = dims / 2;
  return mx::negative(mx::exp(mx::arange(0.0, half, mx::float32) * f32(std::log(base) / half)));
}

mx::array llama3_periods(const Rope::Options& options) {
  const RopeScaling& s = *options.scaling;
  const double original = s.original_max_position.value_or(8192);
  const mx::array plain = plain_periods(options.dims, options.base);
  const mx::array wavelengths = f32(2 * std::numbers::pi) * plain;
  const mx::array longest = f32(original / s.low_freq_factor);
  const mx::array shortest = f32(original / s.high_freq_factor);
  const mx::array outer = mx::where(wavelengths > longest, plain * f32(s.factor), plain);
  const mx::array between = mx::logical_and(wavelengths > shortest, wavelengths < longest);
  const mx::array t =
      (f32(original) / wavelengths - f32(s.low_freq_factor)) / f32(s.high_freq_factor - s.low_freq_factor);
  const mx::array smooth = plain / ((f32(1) - t) / f32(s.factor) + t);
  return mx::where(between, smooth, outer);
}

mx::array yarn_periods(const Rope::Options& options) {
  const RopeScaling& s = *options.scaling;
  const int dims = options.dims;
  const double original = s.original_max_position.value_or(4096);
  // The pair whose period fits `turns` times into the original context.
  const auto pair_of = [&](double turns) {
    return dims * std::log(original / (turns * 2 * std::numbers::pi)) / (2 * std::log(options.base));
  };
  const double low = std::max(std::floor(pair_of(s.beta_fast)), 0.0);
  double high = std::min(std::ceil(pair_of(s.beta_slow)), dims - 1.0);
  if (low == high) high += 0.001;
  const mx::array ramp =
      mx::clip((mx::arange(0.0, dims / 2, mx::float32) - f32(low)) / f32(high - low), f32(0), f32(1));
  const mx::array mask = f32(1) - ramp;
  const mx::array extra = plain_periods(dims, options.base);
  const mx::array inter = f32(s.factor) * extra;
  return (inter * extra) / (inter * mask + extra * (f32(1) - mask));
}

mx::array longrope_periods(const Rope::Options& options) {
  const RopeScaling& s = *options.scaling;
  longrope_original(s);
  // The long factors serve every length: the oracle does not switch.
  const std::vector<float> factors(s.long_factor.begin(), s.long_factor.end());
  if (static_cast<int>(factors.size()) != options.dims / 2)
    fail(ErrorCode::unsupported, "rope", "{} with {} long factors for {} pairs", s.type, factors.size(),
         options.dims / 2);
  return mx::array(factors.data(), {options.dims / 2}) * plain_periods(options.dims, options.base);
}

mx::array proportional_periods(const Rope::Options& options) {
  const int turned = static_cast<int>(options.dims * options.proportional_part);
  if (turned > options.dims)
    fail(ErrorCode::unsupported, "rope", "proportional: {} of {} dims turn", turned, options.dims);
  const mx::array periods = f32(options.scaling->factor) * powers(options.base, turned, options.dims);
  // An infinite period is an exact identity.
  const mx::array still =
      mx::full({(options.dims - turned) / 2}, f32(std::numeric_limits<double>::infinity()));
  return mx::concatenate({periods, still}, 0);
}

double yarn_input_scale(const RopeScaling& s) {
  const auto gain = [&](double m) { return s.factor <= 1 ? 1.0 : 0.1 * m * std::log(s.factor) + 1.0; };
  return gain(s.mscale) / gain(s.mscale_all_dim);
}

double longrope_input_scale(const Rope::Options& options) {
  const double original = longrope_original(*options.scaling);
  const double stretch = options.max_positions.value_or(131072) / original;
  return stretch <= 1.0 ? 1.0 : std::sqrt(1 + std::log(stretch) / std::log(original));
}

}  // namespace godwit::nn
