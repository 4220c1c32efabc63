// How the keys or the values of one layer lie in a block of 64 positions.
//
// Dense keys are [heads, dim, 64], positions innermost; dense values [heads, 64, dim]. Encoded planes of both
// kinds are [heads, 64, fields], a record of packed codes and 16-bit parameters for each head and position,
// so a token's bytes never depend on its neighbours. kv_codec.h has the formulas.
#pragma once

#include <cstdint>

namespace godwit::kernels {

inline constexpr std::int64_t kBlockPositions = 64;

enum class KvForm {
  f32,
  f16,
  bf16,
  affine,        // per group: code * scale + bias, f16 scale and bias
  turbo_keys,    // affine per 32 elements, not rotated
  turbo_values,  // signs, Hadamard rotation, Lloyd-Max levels, f16 root mean square per 32 elements
};

struct KvPlane {
  KvForm form = KvForm::f32;
  int bits = 0;         // affine, turbo
  int group = 0;        // affine: 32, 64 or 128; turbo: 32
  bool parity = false;  // turbo_keys: the published format
  std::int64_t heads = 0;
  std::int64_t dim = 0;     // elements of a head
  std::int64_t offset = 0;  // bytes from the start of a block to this plane; even, dense f32: a multiple of 4

  bool operator==(const KvPlane&) const = default;
};

// Bytes of one head of one position.
std::int64_t record_bytes(const KvPlane& plane);
// Bytes that the plane takes in a block.
std::int64_t plane_bytes(const KvPlane& plane);
// Error{unsupported} that names what is wrong, for a plane that the kernels cannot read: bits, group or head
// size that its form does not have, a dim that is no multiple of 16 or above kMaxHeadDim, no heads.
void check_plane(const KvPlane& plane);

// One plane that is both.
bool keys_as_values(const KvPlane& keys, const KvPlane& values);

}  // namespace godwit::kernels
