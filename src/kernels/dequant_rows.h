// One function per block format, `blocks` as bytes. Internal to the decoders; callers use dequant_blocks().
#pragma once

#include <cstddef>

namespace godwit::kernels::detail {

using Bytes = const unsigned char*;

// 32 elements a block
void q4_0(Bytes block, float* out);
void q4_1(Bytes block, float* out);
void q5_0(Bytes block, float* out);
void q5_1(Bytes block, float* out);
void q8_0(Bytes block, float* out);
void iq4_nl(Bytes block, float* out);
void mxfp4(Bytes block, float* out);
// 256 elements a block
void q2_k(Bytes block, float* out);
void q3_k(Bytes block, float* out);
void q4_k(Bytes block, float* out);
void q5_k(Bytes block, float* out);
void q6_k(Bytes block, float* out);
void iq4_xs(Bytes block, float* out);

}  // namespace godwit::kernels::detail
