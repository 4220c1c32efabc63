#include "nn/rope.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/mx_ops.h"
#include "nn/native_values.h"
#include "nn/rope_periods.h"

namespace godwit::nn {
namespace {

bool is_yarn(const std::string& type) {
  return type == "yarn" || type == "deepseek_yarn" || type == "telechat3-yarn";
}
bool is_longrope(const std::string& type) { return type == "longrope" || type == "su"; }

void check_mrope(const checkpoint::RopeScaling& scaling) {
  if (scaling.mrope_section.size() != 3)
    fail(ErrorCode::unsupported, "rope", "mrope with {} sections, 3 are needed",
         scaling.mrope_section.size());
}

}  // namespace

Rope::Rope(const Options& options)
    : dims_(options.dims), traditional_(options.traditional), base_(options.base) {
  if (dims_ < 2 || dims_ % 2 != 0)
    fail(ErrorCode::unsupported, "rope", "{} values of a head are to be turned, which is no number of pairs", dims_);
  const std::string type = options.scaling ? options.scaling->type : "default";
  if (type == "linear") {
    position_scale_ = static_cast<float>(1.0 / options.scaling->factor);
  } else if (type == "dynamic") {
    if (!options.max_positions)
      fail(ErrorCode::unsupported, "rope", "dynamic without max_position_embeddings");
    dynamic_factor_ = options.scaling->factor;
    max_positions_ = *options.max_positions;
  } else if (type == "llama3") {
    periods_ = llama3_periods(options);
  } else if (is_yarn(type)) {
    periods_ = yarn_periods(options);
    input_scale_ = yarn_input_scale(*options.scaling);
  } else if (is_longrope(type)) {
    periods_ = longrope_periods(options);
    input_scale_ = longrope_input_scale(options);
  } else if (type == "proportional") {
    periods_ = proportional_periods(options);
  } else if (type == "mrope") {
    check_mrope(*options.scaling);
  } else if (type != "default") {
    fail(ErrorCode::unsupported, "rope",
         "no rope type '{}'; there are default, linear, dynamic, llama3, yarn, longrope, proportional and "
         "mrope",
         type);
  }
  if (options.backwards) {
    if (type != "default" || options.period_factors)
      fail(ErrorCode::unsupported, "rope", "a rotation by negative angles with a scaling of type '{}'", type);
    periods_ = backward_periods(dims_, base_);
  }
  if (options.by_periods && !periods_) periods_ = plain_periods(dims_, base_);
  if (options.period_factors)
    periods_ = (periods_ ? *periods_ : plain_periods(dims_, base_)) * *options.period_factors;
}

ops::RopePlan Rope::plan() const {
  const char* missing = traditional_          ? "pairs of neighbours (rope_traditional)"
                        : dynamic_factor_     ? "a base that follows the length (dynamic)"
                        : input_scale_ != 1.0 ? "a factor on the rotated part (yarn, longrope)"
                                              : nullptr;
  if (missing != nullptr) fail(ErrorCode::unsupported, "rope", "native mode does not turn {}", missing);
  ops::RopePlan plan{.dims = dims_, .inverse_frequencies = {}};
  const std::vector<float> periods = periods_ ? native_values(*periods_) : std::vector<float>();
  for (int i = 0; i < dims_ / 2; ++i) {
    const double turned =
        periods_ ? 1.0 / double{periods[static_cast<std::size_t>(i)]} : std::pow(base_, -2.0 * i / dims_);
    plan.inverse_frequencies.push_back(turned * double{position_scale_});
  }
  return plan;
}

float Rope::base_at(int total) const {
  if (!dynamic_factor_) return static_cast<float>(base_);
  const double length = std::max(total, max_positions_);
  const double stretch = *dynamic_factor_ * length / max_positions_ - (*dynamic_factor_ - 1);
  return static_cast<float>(base_ * std::pow(stretch, static_cast<double>(dims_) / (dims_ - 2)));
}

mx::array Rope::scaled(const mx::array& x) const {
  if (input_scale_ == 1.0) return x;
  if (dims_ == x.shape(-1)) return x * scalar_like(input_scale_, x);
  const std::vector<mx::array> parts = mx::split(x, mx::Shape{dims_}, -1);
  return mx::concatenate({parts[0] * scalar_like(input_scale_, x), parts[1]}, -1);
}

mx::array Rope::rotate(const mx::array& x, const Begin& begin) const {
  const std::optional<float> base = periods_ ? std::nullopt : std::optional(begin.base);
  return mx::fast::rope(scaled(x), dims_, traditional_, base, position_scale_, begin.offset, periods_);
}

mx::array Rope::operator()(const mx::array& x, std::span<const int> offsets, std::span<const int> tokens) const {
  GODWIT_CHECK(offsets.size() == tokens.size() && !tokens.empty(), "{} rows, {} spans", offsets.size(),
               tokens.size());
  std::vector<Begin> begins;
  for (std::size_t row = 0; row < tokens.size(); ++row)
    begins.push_back({mx::array(offsets[row]), base_at(offsets[row] + tokens[row])});
  return rotated(x, begins, tokens);
}

mx::array Rope::operator()(const mx::array& x, const cache::Step& step) const {
  const std::span<const int> tokens = step.row_tokens();
  std::vector<Begin> begins;
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    const int total = dynamic_factor_ ? step.row_offsets()[row] + tokens[row] : 0;
    begins.push_back({step.offset(static_cast<int>(row)), base_at(total)});
  }
  return rotated(x, begins, tokens);
}

mx::array Rope::rotated(const mx::array& x, const std::vector<Begin>& begins, std::span<const int> tokens) const {
  const mx::array heads = mx::expand_dims(mx::swapaxes(x, 0, 1), 0);  // [1, heads, tokens, head_dim]
  const auto packed = [](const mx::array& rotated) { return mx::swapaxes(mx::squeeze(rotated, 0), 0, 1); };
  if (tokens.size() == 1) return packed(rotate(heads, begins[0]));
  mx::Shape ends;
  for (std::size_t row = 0; row + 1 < tokens.size(); ++row)
    ends.push_back((ends.empty() ? 0 : ends.back()) + tokens[row]);
  std::vector<mx::array> rows = mx::split(heads, ends, 2);
  for (std::size_t row = 0; row < rows.size(); ++row) rows[row] = rotate(rows[row], begins[row]);
  return packed(mx::concatenate(std::move(rows), 2));
}

}  // namespace godwit::nn
