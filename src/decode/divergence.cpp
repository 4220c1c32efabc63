#include "decode/divergence.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace godwit::decode {

double log_sum_exp(std::span<const float> logits) {
  float largest = -std::numeric_limits<float>::infinity();
  bool has_nan = false;
  for (const float logit : logits) {
    has_nan = has_nan || std::isnan(logit);
    largest = std::max(largest, logit);
  }
  if (has_nan || !std::isfinite(largest))
    fail(ErrorCode::internal, "eval", "the model's logits are no distribution: {}",
         has_nan ? "they hold NaN" : "their largest is not finite");
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - double{largest});
  return double{largest} + std::log(sum);
}

double kl_divergence(std::span<const float> wanted, std::span<const float> got) {
  GODWIT_CHECK(wanted.size() == got.size(), "{} and {} logits", wanted.size(), got.size());
  const double wanted_sum = log_sum_exp(wanted), got_sum = log_sum_exp(got);
  double divergence = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double log_p = double{wanted[i]} - wanted_sum;
    const double p = std::exp(log_p);
    if (p > 0) divergence += p * (log_p - (double{got[i]} - got_sum));
  }
  return std::max(divergence, 0.0);  // terms have both signs: rounding may leave -1e-17
}

int likeliest_token(std::span<const float> logits) {
  return static_cast<int>(std::ranges::max_element(logits) - logits.begin());
}

void Divergence::add(std::span<const float> wanted, std::span<const float> got) {
  const double divergence = kl_divergence(wanted, got);
  sum_ += divergence;
  largest_ = std::max(largest_, divergence);
  agreeing_ += likeliest_token(wanted) == likeliest_token(got) ? 1 : 0;
  ++positions_;
}

double Divergence::top1_agreement() const {
  return static_cast<double>(agreeing_) / static_cast<double>(positions_);
}

void Perplexity::add(std::span<const float> logits, int next) {
  const double surprise = log_sum_exp(logits) - double{logits[static_cast<std::size_t>(next)]};
  sum_ += surprise;
  sum_of_squares_ += surprise * surprise;
  ++positions_;
}

double Perplexity::value() const { return std::exp(mean()); }

double Perplexity::standard_error() const {
  if (positions_ < 2) return 0;
  const auto count = static_cast<double>(positions_);
  const double variance = std::max(sum_of_squares_ - count * mean() * mean(), 0.0) / (count - 1);
  return value() * std::sqrt(variance / count);
}

}  // namespace godwit::decode
