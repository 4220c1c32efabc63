#include "decode/mirostat.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "decode/portable_math.h"

namespace godwit::decode {
namespace {

constexpr std::size_t kHead = 100;  // ranks that the exponent is estimated from
constexpr double kLn2 = 0.693147180559945309417;

double power(double base, double exponent) { return portable_exp(exponent * portable_log(base)); }

// Least squares of the logarithms of neighbouring ranks against those of their probabilities.
double zipf_exponent(std::span<const Candidate> sorted) {
  double products = 0, squares = 0;
  for (std::size_t i = 0; i + 1 < std::min(kHead, sorted.size()); ++i) {
    const double rank = portable_log(double(i + 2) / double(i + 1));
    products += rank * (sorted[i].logit - sorted[i + 1].logit);
    squares += rank * rank;
  }
  return squares > 0 ? products / squares : 1;
}

}  // namespace

void Mirostat::truncate(Candidates& candidates, std::size_t vocabulary) const {
  if (version_ == 2) return candidates.keep_surprise(level_);
  candidates.sort();
  const double exponent = zipf_exponent(candidates.items());
  const double epsilon = exponent - 1;
  // k = ((epsilon 2^level) / (1 - n^-epsilon)) ^ (1 / exponent); the limit at epsilon = 0 is a quotient of
  // logarithms.
  const double share = std::abs(epsilon) < 1e-9 ? 1 / portable_log(double(vocabulary))
                                                : epsilon / (1 - power(double(vocabulary), -epsilon));
  const double inner = share * portable_exp(level_ * kLn2);
  const double k = exponent > 0 && inner > 0 ? power(inner, 1 / exponent) : double(vocabulary);
  candidates.keep_top_k(static_cast<int>(std::clamp(k, 1.0, double(vocabulary))));
}

void Mirostat::chosen(const Candidates& candidates, int id) {
  pending_ = id;
  surprise_ = candidates.surprise_of(id);
}

void Mirostat::see(int id) {
  if (id == pending_) level_ -= eta_ * (surprise_ - tau_);
  pending_ = -1;
}

}  // namespace godwit::decode
