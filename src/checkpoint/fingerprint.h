// A SHA-256 that names a config or a set of tensors.
#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace godwit::checkpoint {

struct Fingerprint {
  std::string digits;  // 64 lower-case hexadecimal digits

  // For people; comparisons take all digits.
  std::string_view shown() const { return std::string_view(digits).substr(0, 16); }
  auto operator<=>(const Fingerprint&) const = default;
};

}  // namespace godwit::checkpoint
