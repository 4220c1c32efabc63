// Element formats of tensors in files: plain dtypes and GGUF block formats (layouts in docs/formats.md).
#pragma once

#include <cstdint>
#include <string_view>

namespace godwit::checkpoint {

enum class TensorFormat : std::uint8_t {
  // plain
  boolean,
  u8,
  u16,
  u32,
  u64,
  i8,
  i16,
  i32,
  i64,
  f16,
  bf16,
  f32,
  f64,
  complex64,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
  // GGUF blocks
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs,
  mxfp4,
};

struct FormatInfo {
  std::string_view name;  // "F32", "Q4_K", ...
  int block_elements;     // 1 for plain formats
  int block_bytes;
};

const FormatInfo& info(TensorFormat format);

}  // namespace godwit::checkpoint
