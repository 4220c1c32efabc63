#include "kernels/rope.h"

#include <cmath>
#include <initializer_list>

namespace godwit::kernels {
namespace {

struct SineCosine {
  double sine, cosine;
};

// Taylor polynomials on [-pi/4, pi/4]: the first terms left out are below (pi/4)^17/17! = 5e-17 and
// (pi/4)^18/18! = 2e-18.
SineCosine near_zero(double r) {
  const double s = r * r;
  double sine = 1.0 / -1307674368000.0;  // -1/15!
  for (const double divisor : {6227020800.0, -39916800.0, 362880.0, -5040.0, 120.0, -6.0})
    sine = std::fma(sine, s, 1.0 / divisor);
  double cosine = 1.0 / 20922789888000.0;  // 1/16!
  for (const double divisor : {-87178291200.0, 479001600.0, -3628800.0, 40320.0, -720.0, 24.0, -2.0})
    cosine = std::fma(cosine, s, 1.0 / divisor);
  return {std::fma(r * s, sine, r), std::fma(s, cosine, 1.0)};
}

// Subtracts the nearest multiple of pi/2, held as three doubles whose sum is good to 2^-160.
SineCosine sine_cosine(double angle) {
  constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1, kRound = 0x1.8p52;
  constexpr double kHigh = 0x1.921fb54442d18p0, kMiddle = 0x1.1a62633145c07p-54,
                   kLow = -0x1.f1976b7ed8fbcp-110;
  const double turns = (angle * kTwoOverPi + kRound) - kRound;
  double r = std::fma(-turns, kHigh, angle);
  r = std::fma(-turns, kMiddle, r);
  r = std::fma(-turns, kLow, r);
  const SineCosine base = near_zero(r);
  switch (static_cast<std::int64_t>(turns) & 3) {
    case 0:
      return base;
    case 1:
      return {base.cosine, -base.sine};
    case 2:
      return {-base.sine, -base.cosine};
    default:
      return {-base.cosine, base.sine};
  }
}

}  // namespace

void rope_table(const RopeTableArgs& a) {
  for (std::int64_t token = 0; token < a.tokens; token++)
    for (std::int64_t i = 0; i < a.half; i++) {
      const SineCosine value = sine_cosine(a.positions[token] * a.inverse_frequencies[i]);
      a.cosines[token * a.half + i] = static_cast<float>(value.cosine);
      a.sines[token * a.half + i] = static_cast<float>(value.sine);
    }
}

}  // namespace godwit::kernels
