#include "decode/portable_math.h"

#include <cmath>
#include <limits>

namespace godwit::decode {
namespace {

// ln 2 in two parts: the first has 21 trailing zero bits, so that k * kLn2High is exact for every exponent k.
constexpr double kLn2High = 0x1.62e42fee00000p-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kLog2E = 1.4426950408889634;
constexpr double kSqrtHalf = 0.7071067811865476;

}  // namespace

double portable_exp(double x) {
  if (x < -745.2) return 0.0;
  if (x > 709.8) return std::numeric_limits<double>::infinity();
  const double k = std::floor(x * kLog2E + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;  // |r| <= ln(2) / 2
  // Taylor; the first term left out is r^14 / 14! < 5e-18.
  double sum = 1.0;
  for (int n = 13; n >= 1; --n) sum = 1.0 + sum * r / n;
  return std::ldexp(sum, static_cast<int>(k));
}

double portable_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < kSqrtHalf) {
    m *= 2;
    --exponent;
  }
  // log m = 2 atanh f; |f| < 0.1716, the first term left out is f^24 / 25 < 2e-20.
  const double f = (m - 1.0) / (m + 1.0);
  const double square = f * f;
  double tail = 0.0;
  for (int n = 23; n >= 3; n -= 2) tail = square * (1.0 / n + tail);
  const double log_m = 2.0 * f + 2.0 * f * tail;
  return exponent * kLn2High + (log_m + exponent * kLn2Low);
}

}  // namespace godwit::decode
