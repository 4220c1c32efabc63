#include "decode/noise.h"

#include <bit>

#include "decode/portable_math.h"

namespace godwit::decode {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

std::uint64_t Noise::bits(Stream stream, std::uint32_t index) const {
  // One block of four words serves two neighbouring indices.
  const auto words = philox4x32({index / 2, position_, choice_, static_cast<std::uint32_t>(stream)}, key_);
  const std::size_t at = 2 * (index % 2);
  const std::uint64_t whole = (std::uint64_t{words[at]} << 32) | words[at + 1];
  return whole >> 12;
}

double Noise::gumbel(std::uint64_t bits) { return -portable_log(-portable_log(uniform(bits))); }

double Noise::gumbel_bound(std::uint64_t bits) {
  // -log u >= 1 - u, hence -log(-log u) <= -log(1 - u); and 1 - u = (rest + 1/2) / 2^52 >= 2^(bit_width(rest)
  // - 53).
  constexpr double kLn2RoundedUp = 0.69314718056;
  const std::uint64_t rest = (std::uint64_t{1} << 52) - 1 - bits;
  return (53 - std::bit_width(rest)) * kLn2RoundedUp + 1e-9;  // the slack covers the rounding of gumbel()
}

}  // namespace godwit::decode
