#include "mutator.h"

#include <array>
#include <cctype>
#include <cstring>

namespace godwit::fuzz {

// splitmix64
std::uint64_t Mutator::next() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::size_t Mutator::below(std::size_t bound) {
  return bound == 0 ? 0 : static_cast<std::size_t>(next() % bound);
}

std::string Mutator::mutate(std::string input, const std::vector<std::string>& others) {
  for (std::size_t left = 1 + below(6); left > 0; --left) mutate_once(input, others);
  return input;
}

// Numbers at which size arithmetic breaks, in a random width.
void Mutator::put_integer(std::string& bytes) {
  constexpr std::array<std::uint64_t, 18> kEdges = {
      0,          1,          2,          9,          31,         33,         127,        255,        256,
      0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32, 1ull << 40, 1ull << 61, 1ull << 62, 1ull << 63, ~0ull};
  const std::uint64_t value = below(4) == 0 ? next() : kEdges[below(kEdges.size())];
  const std::size_t width = std::size_t{1} << below(4);
  if (bytes.size() < width) return;
  std::memcpy(bytes.data() + below(bytes.size() - width + 1), &value, width);
}

// The same for numbers written out in JSON.
void Mutator::change_digits(std::string& bytes) {
  constexpr std::array<const char*, 12> kNumbers = {"0",
                                                    "-1",
                                                    "4294967296",
                                                    "18446744073709551615",
                                                    "9223372036854775808",
                                                    "1e308",
                                                    "1.5",
                                                    "null",
                                                    "\"x\"",
                                                    "[]",
                                                    "{}",
                                                    "true"};
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (std::isdigit(static_cast<unsigned char>(bytes[i])) &&
        (i == 0 || !std::isdigit(static_cast<unsigned char>(bytes[i - 1]))))
      starts.push_back(i);
  if (starts.empty()) return;
  const std::size_t start = starts[below(starts.size())];
  std::size_t end = start;
  while (end < bytes.size() && std::isdigit(static_cast<unsigned char>(bytes[end]))) ++end;
  bytes.replace(start, end - start, kNumbers[below(kNumbers.size())]);
}

void Mutator::borrow(std::string& bytes, const std::vector<std::string>& others) {
  if (others.empty()) return;
  const std::string& other = others[below(others.size())];
  const std::size_t from = below(other.size()), length = below(other.size() - from + 1);
  const std::size_t at = below(bytes.size() + 1);
  bytes.replace(at, below(bytes.size() - at + 1), other, from, length);
}

void Mutator::mutate_once(std::string& bytes, const std::vector<std::string>& others) {
  const std::size_t at = below(bytes.size());
  switch (below(9)) {
    case 0:
      if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
      break;
    case 1:
      if (!bytes.empty()) bytes[at] = static_cast<char>(next());
      break;
    case 2:
    case 3:
      put_integer(bytes);
      break;
    case 4:
      bytes.insert(at, below(16), static_cast<char>(next()));
      break;
    case 5:
      bytes.erase(at, below(16));
      break;
    case 6:
      bytes.resize(at);
      break;
    case 7:
      change_digits(bytes);
      break;
    default:
      borrow(bytes, others);
      break;
  }
}

}  // namespace godwit::fuzz
