#include "oracle/same_bits.h"

#include <cstring>
#include <sstream>

#include "base/mx_ops.h"

namespace godwit::oracle {
namespace {

float value_at(const mx::array& array, std::size_t index) {
  return mx::slice(mx::astype(mx::flatten(array), mx::float32), {static_cast<int>(index)},
                   {static_cast<int>(index) + 1})
      .item<float>();
}

std::string describe(const mx::array& array) {
  std::ostringstream out;
  out << array.dtype() << " " << array.shape();
  return out.str();
}

}  // namespace

testing::AssertionResult same_bits(const mx::array& actual, const mx::array& expected) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape()) {
    return testing::AssertionFailure() << describe(actual) << ", expected " << describe(expected);
  }
  const auto* left = actual.data<std::uint8_t>();
  const auto* right = expected.data<std::uint8_t>();
  const std::size_t width = actual.itemsize();
  std::size_t differing = 0;
  std::size_t first = 0;
  for (std::size_t i = actual.size(); i-- > 0;) {
    if (std::memcmp(left + i * width, right + i * width, width) == 0) continue;
    first = i;
    ++differing;
  }
  if (differing == 0) return testing::AssertionSuccess();
  const std::size_t columns = static_cast<std::size_t>(actual.shape(-1));
  return testing::AssertionFailure() << differing << " of " << actual.size() << " elements differ, first ["
                                     << first / columns << ", " << first % columns
                                     << "]: " << value_at(actual, first) << ", expected "
                                     << value_at(expected, first);
}

}  // namespace godwit::oracle
