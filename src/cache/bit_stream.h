// Codes of 2 to 5 bits as a little-endian bit stream along the last axis: element i takes bits [i*b,
// (i+1)*b).
#pragma once

#include "base/mx.h"

namespace godwit::cache {

// codes uint32 [..., n], n a multiple of 8 -> uint8 [..., n * bits / 8].
mx::array pack_bits(const mx::array& codes, int bits);
// The inverse: uint32 [..., n].
mx::array unpack_bits(const mx::array& bytes, int bits);

}  // namespace godwit::cache
