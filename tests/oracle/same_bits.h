// Arrays compared by their raw bits.
#pragma once

#include <gtest/gtest.h>

#include "base/mx.h"

namespace godwit::oracle {

// Equal dtype, shape and raw bits of two evaluated, contiguous arrays; a failure names the first differing
// element and both values.
testing::AssertionResult same_bits(const mx::array& actual, const mx::array& expected);

}  // namespace godwit::oracle
