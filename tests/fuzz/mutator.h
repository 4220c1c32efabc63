// Seeded damage to byte strings: the same seed and inputs give the same bytes on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace godwit::fuzz {

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : state_(seed) {}

  // A copy of `input` with one to six mutations; `others` are where pieces are borrowed from.
  std::string mutate(std::string input, const std::vector<std::string>& others);
  // Uniform in [0, bound).
  std::size_t below(std::size_t bound);

 private:
  std::uint64_t next();
  void mutate_once(std::string& bytes, const std::vector<std::string>& others);
  void put_integer(std::string& bytes);
  void change_digits(std::string& bytes);
  void borrow(std::string& bytes, const std::vector<std::string>& others);

  std::uint64_t state_;
};

}  // namespace godwit::fuzz
