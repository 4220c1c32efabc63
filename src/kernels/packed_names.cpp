#include <fmt/format.h>

#include "kernels/packed_weights.h"

namespace godwit::kernels {
namespace {

const char* name_of(PackedCodes codes) {
  switch (codes) {
    case PackedCodes::q8_0:
      return "q8_0";
    case PackedCodes::q5_0:
      return "q5_0";
    case PackedCodes::q5_1:
      return "q5_1";
    case PackedCodes::q4_0:
      return "q4_0";
    case PackedCodes::q4_1:
      return "q4_1";
    case PackedCodes::q4_k:
      return "q4_k";
    case PackedCodes::q5_k:
      return "q5_k";
    case PackedCodes::q6_k:
      return "q6_k";
    case PackedCodes::q3_k:
      return "q3_k";
    case PackedCodes::q2_k:
      return "q2_k";
    case PackedCodes::mxfp4:
      return "mxfp4";
    case PackedCodes::affine2:
      return "affine2";
    case PackedCodes::affine3:
      return "affine3";
    case PackedCodes::affine4:
      return "affine4";
    case PackedCodes::affine5:
      return "affine5";
    case PackedCodes::affine6:
      return "affine6";
    case PackedCodes::affine8:
      return "affine8";
    case PackedCodes::dense:
      return "dense";
    case PackedCodes::iq4_nl:
      return "iq4_nl";
    case PackedCodes::iq4_xs:
      return "iq4_xs";
  }
  return "unknown";
}

const char* name_of(ScaleType type) {
  switch (type) {
    case ScaleType::f16:
      return "f16";
    case ScaleType::bf16:
      return "bf16";
    case ScaleType::f32:
      return "f32";
  }
  return "unknown";
}

}  // namespace

std::string name_of(const PackedFormat& format) {
  return fmt::format("{}:{}:{}", name_of(format.codes), format.group, name_of(format.scales));
}

}  // namespace godwit::kernels
