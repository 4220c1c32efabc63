// The turbo codec on MLX's own ops (`reference` mode; reference/kv.md 5.1 to 5.5). Groups of 32 elements
// along the head dimension; everything in between is f32.
//
//   keys    codes of affine groups, not rotated: codes, scales f16, zeros f16. Codes of 8 bits are int8,
//   others a
//           bit stream of uint8 [.., dim * bits / 8].
//   values  signs, an orthonormal Hadamard transform and Lloyd-Max levels under the group's root mean square:
//   codes
//           uint8 (8 bits unpacked), scales f16.
//
// Published keys (Codec::parity) store an integer zero point in f16, so a constant group that is not 0 is lost
// and may decode to NaN. Safe keys store the group's smallest value, at 8 bits its middle, rounded so that the grid
// covers the group, and the codes are those of the stored parameters: finite for every finite input in f16's range.
#pragma once

#include <vector>

#include "base/mx.h"
#include "cache/kv_policy.h"

namespace godwit::cache {

inline constexpr int kTurboGroup = 32;

// x [..., dim], dim 64, 128, 256 or 512.
std::vector<mx::array> encode_turbo_keys(const Codec& codec, const mx::array& x);
std::vector<mx::array> encode_turbo_values(const Codec& codec, const mx::array& x);

mx::array decode_turbo_keys(const Codec& codec, const std::vector<mx::array>& planes, mx::Dtype type);
// Still in the rotated domain: attention is linear in the values, so the output can be turned back instead.
mx::array decode_rotated(const Codec& codec, const std::vector<mx::array>& planes, mx::Dtype type);
mx::array decode_turbo_values(const Codec& codec, const std::vector<mx::array>& planes, mx::Dtype type);

// signs * Hadamard(x), in f32, back in x's dtype.
mx::array inverse_transform(const mx::array& x);

}  // namespace godwit::cache
