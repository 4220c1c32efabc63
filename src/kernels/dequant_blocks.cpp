#include "kernels/dequant_blocks.h"

#include "kernels/dequant_rows.h"

namespace godwit::kernels {
namespace {

struct Decoder {
  BlockSize size;
  void (*decode)(detail::Bytes, float*);
};

// Indexed by BlockFormat.
constexpr Decoder kDecoders[] = {
    {{32, 18}, detail::q4_0},   {{32, 20}, detail::q4_1},   {{32, 22}, detail::q5_0},
    {{32, 24}, detail::q5_1},   {{32, 34}, detail::q8_0},   {{256, 84}, detail::q2_k},
    {{256, 110}, detail::q3_k}, {{256, 144}, detail::q4_k}, {{256, 176}, detail::q5_k},
    {{256, 210}, detail::q6_k}, {{32, 18}, detail::iq4_nl}, {{256, 136}, detail::iq4_xs},
    {{32, 17}, detail::mxfp4},
};

const Decoder& decoder(BlockFormat format) { return kDecoders[static_cast<int>(format)]; }

}  // namespace

const signed char kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

BlockSize block_size(BlockFormat format) { return decoder(format).size; }

void dequant_blocks(BlockFormat format, const std::byte* blocks, std::size_t block_count, float* out) {
  const Decoder& use = decoder(format);
  const auto* bytes = reinterpret_cast<const unsigned char*>(blocks);
  for (std::size_t i = 0; i < block_count; ++i)
    use.decode(bytes + i * use.size.bytes, out + i * use.size.elements);
}

}  // namespace godwit::kernels
