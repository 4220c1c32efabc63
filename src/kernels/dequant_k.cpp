// Block formats of 256 elements: a super-block scale (f16) over 6-, 8- or 4-bit scales of groups of 16 or 32.
#include <cstdint>

#include "kernels/dequant_blocks.h"
#include "kernels/dequant_half.h"
#include "kernels/dequant_rows.h"

namespace godwit::kernels {

ScaleMin k_scale_min(const unsigned char* packed, int group) {
  if (group < 4) return {packed[group] & 63, packed[group + 4] & 63};
  return {(packed[group + 4] & 15) | (packed[group - 4] >> 6) << 4,
          (packed[group + 4] >> 4) | (packed[group] >> 6) << 4};
}

int q3_scale(const unsigned char* packed, int group) {
  const int low = group < 8 ? packed[group] & 15 : packed[group - 8] >> 4;
  const int high = packed[8 + group % 4] >> (2 * (group / 4)) & 3;
  return (low | high << 4) - 32;
}

int iq4_xs_scale(const unsigned char* packed, int group) {
  const int low = packed[2 + group / 2] >> (4 * (group % 2)) & 15;
  const int high = packed[group / 4] >> (2 * (group % 4)) & 3;
  return (low | high << 4) - 32;
}

namespace detail {

// scales[16] (scale low, minimum high nibble), qs[64], d, dmin. Each half of 128 takes 32 bytes of four 2-bit
// fields.
void q2_k(Bytes block, float* out) {
  const Bytes scales = block, quants = block + 16;
  const float d = load_half(block + 80), dmin = load_half(block + 82);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, run = i / 32 % 4, group = i / 16;
    const int q = quants[32 * half + i % 32] >> (2 * run) & 3;
    const float scale = d * static_cast<float>(scales[group] & 15),
                min = dmin * static_cast<float>(scales[group] >> 4);
    out[i] = scale * static_cast<float>(q) - min;
  }
}

// hmask[32], qs[64], scales[12], d. A clear mask bit subtracts 4.
void q3_k(Bytes block, float* out) {
  const Bytes mask = block, quants = block + 32, scales = block + 96;
  const float d = load_half(block + 108);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, run = i / 32 % 4, byte = i % 32;
    const int low = quants[32 * half + byte] >> (2 * run) & 3;
    const int q = low - ((mask[byte] >> (4 * half + run) & 1) ? 0 : 4);
    out[i] = d * static_cast<float>(q3_scale(scales, i / 16)) * static_cast<float>(q);
  }
}

// d, dmin, scales[12], qs[128]. 32 bytes hold two groups of 32, low nibbles first.
void q4_k(Bytes block, float* out) {
  const float d = load_half(block), dmin = load_half(block + 2);
  for (int group = 0; group < 8; ++group) {
    const ScaleMin of = k_scale_min(block + 4, group);
    const float scale = d * static_cast<float>(of.scale), min = dmin * static_cast<float>(of.min);
    const Bytes quants = block + 16 + 32 * (group / 2);
    for (int i = 0; i < 32; ++i)
      out[32 * group + i] = scale * static_cast<float>(quants[i] >> (4 * (group % 2)) & 15) - min;
  }
}

// d, dmin, scales[12], qh[32], qs[128]. The fifth bit of group j is bit j of qh.
void q5_k(Bytes block, float* out) {
  const float d = load_half(block), dmin = load_half(block + 2);
  const Bytes high = block + 16;
  for (int group = 0; group < 8; ++group) {
    const ScaleMin of = k_scale_min(block + 4, group);
    const float scale = d * static_cast<float>(of.scale), min = dmin * static_cast<float>(of.min);
    const Bytes quants = block + 48 + 32 * (group / 2);
    for (int i = 0; i < 32; ++i) {
      const int q = (quants[i] >> (4 * (group % 2)) & 15) | (high[i] >> group & 1) << 4;
      out[32 * group + i] = scale * static_cast<float>(q) - min;
    }
  }
}

// ql[128], qh[64], scales[16] signed, d. Each half of 128: four runs of 32 share 64 bytes of ql and 32 of qh.
void q6_k(Bytes block, float* out) {
  const Bytes scales = block + 192;
  const float d = load_half(block + 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, run = i / 32 % 4, lane = i % 32;
    const int low = block[64 * half + 32 * (run % 2) + lane] >> (4 * (run / 2)) & 15;
    const int high = block[128 + 32 * half + lane] >> (2 * run) & 3;
    const float scale = d * static_cast<float>(static_cast<signed char>(scales[i / 16]));
    out[i] = scale * static_cast<float>((low | high << 4) - 32);
  }
}

// d, scales_h u16, scales_l[4], qs[128]: 8 groups of 32 in the nibble order of the 32-element formats.
void iq4_xs(Bytes block, float* out) {
  const float d = load_half(block);
  for (int group = 0; group < 8; ++group) {
    const float scale = d * static_cast<float>(iq4_xs_scale(block + 2, group));
    const Bytes quants = block + 8 + 16 * group;
    for (int i = 0; i < 16; ++i) {
      out[32 * group + i] = scale * static_cast<float>(kIq4Values[quants[i] & 15]);
      out[32 * group + i + 16] = scale * static_cast<float>(kIq4Values[quants[i] >> 4]);
    }
  }
}

}  // namespace detail
}  // namespace godwit::kernels
