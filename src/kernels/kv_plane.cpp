#include "kernels/kv_plane.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "kernels/attention.h"

namespace godwit::kernels {
namespace {

constexpr const char* kNames[] = {"f32", "f16", "bf16", "affine", "turbo keys", "turbo values"};

template <std::size_t n>
void require(const KvPlane& plane, const char* what, std::int64_t value, const std::array<int, n>& allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) == allowed.end())
    fail(ErrorCode::unsupported, "kv", "{} of {} {}; there are {}", kNames[static_cast<int>(plane.form)],
         value, what, fmt::join(allowed, ", "));
}

void check_encoding(const KvPlane& plane) {
  switch (plane.form) {
    case KvForm::affine:
      require(plane, "bits", plane.bits, std::array{2, 3, 4, 5, 6, 8});
      require(plane, "elements a group", plane.group, std::array{32, 64, 128});
      break;
    case KvForm::turbo_keys:
      require(plane, "bits", plane.bits, std::array{2, 4, 5, 8});
      require(plane, "elements a group", plane.group, std::array{32});
      break;
    case KvForm::turbo_values:
      require(plane, "bits", plane.bits, std::array{2, 3, 4, 5, 8});
      require(plane, "elements a group", plane.group, std::array{32});
      require(plane, "elements a head", plane.dim, std::array{64, 128, 256, 512});
      break;
    default:
      return;
  }
  if (plane.dim % plane.group != 0)
    fail(ErrorCode::unsupported, "kv", "a head of {} elements in groups of {}", plane.dim, plane.group);
}

}  // namespace

std::int64_t record_bytes(const KvPlane& plane) {
  const std::int64_t codes = plane.dim * plane.bits / 8;
  switch (plane.form) {
    case KvForm::f32:
      return plane.dim * 4;
    case KvForm::f16:
    case KvForm::bf16:
      return plane.dim * 2;
    case KvForm::affine:
    case KvForm::turbo_keys:
      return codes + plane.dim / plane.group * 4;
    case KvForm::turbo_values:
      return codes + plane.dim / plane.group * 2;
  }
  return 0;
}

std::int64_t plane_bytes(const KvPlane& plane) { return plane.heads * kBlockPositions * record_bytes(plane); }

void check_plane(const KvPlane& plane) {
  if (plane.heads < 1) fail(ErrorCode::unsupported, "kv", "{} heads", plane.heads);
  if (plane.dim < 16 || plane.dim % 16 != 0 || plane.dim > kMaxHeadDim)
    fail(ErrorCode::unsupported, "kv",
         "heads of {} elements; native attention takes multiples of 16 up to {}", plane.dim, kMaxHeadDim);
  check_encoding(plane);
}

bool keys_as_values(const KvPlane& keys, const KvPlane& values) { return keys.offset == values.offset; }

}  // namespace godwit::kernels
