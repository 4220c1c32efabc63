// Random numbers as a pure function of (seed, choice index, token position): nothing is stored and nothing is
// shared, so a token does not depend on what was drawn before, beside it, or twice.
//
// Generator: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011). Key: the seed. Counter words: block, position, choice, stream. docs/sampling.md describes the use of
// the streams.
#pragma once

#include <array>
#include <cstdint>

namespace godwit::decode {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

class Noise {
 public:
  // The numbers of one position of one answer.
  Noise(std::uint64_t seed, std::uint32_t choice, std::uint32_t position)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        choice_(choice),
        position_(position) {}

  // 52 random bits for a token: u = (bits + 1/2) / 2^52 lies strictly between 0 and 1.
  std::uint64_t token_bits(std::uint32_t id) const { return bits(Stream::token, id); }
  // Uniform in (0, 1), for the XTC coin.
  double coin() const { return uniform(bits(Stream::xtc, 0)); }

  static double uniform(std::uint64_t bits) { return (static_cast<double>(bits) + 0.5) * 0x1p-52; }
  // Standard Gumbel: -log(-log(u)).
  static double gumbel(std::uint64_t bits);
  // No Gumbel value of these bits is larger; costs no logarithm.
  static double gumbel_bound(std::uint64_t bits);

 private:
  enum class Stream : std::uint32_t { token = 0, xtc = 1 };
  std::uint64_t bits(Stream stream, std::uint32_t index) const;

  std::array<std::uint32_t, 2> key_;
  std::uint32_t choice_;
  std::uint32_t position_;
};

}  // namespace godwit::decode
